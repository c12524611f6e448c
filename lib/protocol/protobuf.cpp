#include "lib/protocol/protobuf.hpp"

#include <cstdint>
#include <optional>

namespace netdyno {
namespace {

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

}  // namespace

bool parts_fit(std::string_view message) {
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return false;
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
      default:  // a group begins or ends: what is in it follows as any other part
        break;
    }
    if (!size || *size > message.size()) return false;
    message.remove_prefix(*size);
  }
  return true;
}

}  // namespace netdyno
