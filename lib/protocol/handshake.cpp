#include "lib/protocol/handshake.hpp"

#include <algorithm>
#include <array>

#include "lib/protocol/framing.hpp"

namespace netdyno {
namespace {

constexpr std::string_view mark{"\0\0\0\0", 4};
constexpr std::size_t letters_size = 4;

struct Letters {
  ControlKind kind;
  std::string_view text;
};
constexpr std::array<Letters, 4> all_letters{{{ControlKind::hello, "HELO"},
                                              {ControlKind::welcome, "WELC"},
                                              {ControlKind::full, "FULL"},
                                              {ControlKind::bye, "BYE!"}}};

}  // namespace

ControlBytes encode_control(const ControlMessage& message) {
  const auto letters = std::ranges::find(all_letters, message.kind, &Letters::kind);
  ControlBytes bytes{};
  auto next = std::ranges::copy(mark, bytes.begin()).out;
  next = std::ranges::copy(letters->text, next).out;
  for (int shift = 56; shift >= 0; shift -= 8) *next++ = static_cast<char>(message.token >> shift);
  return bytes;
}

bool is_control(std::string_view message) { return message.starts_with(mark); }

std::optional<ControlMessage> decode_control(std::string_view message) {
  if (message.size() != control_size || !is_control(message)) return std::nullopt;
  const auto letters = std::ranges::find(all_letters, message.substr(mark.size(), letters_size), &Letters::text);
  if (letters == all_letters.end()) return std::nullopt;
  std::uint64_t token = 0;
  for (const char c : message.substr(mark.size() + letters_size)) token = token << 8 | static_cast<unsigned char>(c);
  return ControlMessage{letters->kind, token};
}

bool is_one_message(Workload workload, std::string_view bytes) {
  if (workload != Workload::rpc && workload != Workload::chat) return !bytes.empty() && !is_control(bytes);
  if (bytes.size() <= frame_header_size) return false;
  return decode_frame_header(bytes.data()) == bytes.size() - frame_header_size;
}

}  // namespace netdyno
