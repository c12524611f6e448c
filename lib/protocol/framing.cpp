#include "lib/protocol/framing.hpp"

#include <algorithm>
#include <cassert>

namespace netdyno {

std::array<char, frame_header_size> encode_frame_header(std::size_t body_size) {
  const auto n = static_cast<std::uint32_t>(body_size);
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

std::uint32_t decode_frame_header(const char* header) {
  const auto byte = [header](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(header[i])); };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

void FrameParts::take(std::string_view bytes) {
  assert(bytes.size() <= missing_);
  if (!in_body_) std::ranges::copy(bytes, header_.end() - static_cast<std::ptrdiff_t>(missing_));
  missing_ -= bytes.size();
  if (missing_ > 0) return;
  const std::size_t body = in_body_ ? 0 : decode_frame_header(header_.data());
  in_body_ = body > 0;
  missing_ = in_body_ ? body : frame_header_size;
}

}  // namespace netdyno
