#include "lib/protocol/protobuf.hpp"

#include <cstdint>
#include <optional>

namespace netdyno {
namespace {

constexpr unsigned tag_bits = 32;

/// Takes a number off the front: 7 bits in each byte, the lowest first.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  constexpr unsigned longest = 70;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < longest && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// `depth`: how many messages this one is in, of which protocol/work.proto has one.
bool fits(std::string_view message, int depth) {
  int groups = 0;
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag || *tag >> tag_bits != 0) return false;
    std::optional<std::uint64_t> size = 0;
    switch (*tag & 7) {  // the wire type
      case 0:
        if (!take_varint(message)) return false;
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(message);
        break;
      case 5:
        size = 4;
        break;
      case 3:  // a group begins: what is in it follows as any other part
        ++groups;
        break;
      case 4:
        --groups;
        break;
      default:
        return false;
    }
    if (!size || *size > message.size()) return false;
    const bool is_message = depth == 0 && groups == 0 && (*tag & 7) == 2 && *tag >> 3 <= 2;
    if (is_message && !fits(message.substr(0, *size), depth + 1)) return false;
    message.remove_prefix(*size);
  }
  return true;
}

}  // namespace

bool parts_fit(std::string_view message) { return fits(message, 0); }

}  // namespace netdyno
