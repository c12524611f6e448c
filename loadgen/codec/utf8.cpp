#include "loadgen/codec/utf8.hpp"

#include <cstring>

namespace netdyno::load {

std::size_t Utf8::take(std::string_view piece) {
  const std::size_t size = piece.size();
  while (!piece.empty()) {
    std::uint64_t word = 0;
    if (left_ == 0 && piece.size() >= sizeof word) {
      std::memcpy(&word, piece.data(), sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {  // ASCII, eight bytes at once
        piece.remove_prefix(sizeof word);
        continue;
      }
    }
    const auto byte = static_cast<unsigned char>(piece.front());
    if (left_ == 0) {
      if (!begin(byte)) break;
    } else {
      if (byte < low_ || byte > high_) break;
      --left_;
      low_ = 0x80;
      high_ = 0xbf;
    }
    piece.remove_prefix(1);
  }
  return size - piece.size();
}

/// The table of RFC 3629, 4.
bool Utf8::begin(unsigned char first) {
  if (first < 0x80) return true;
  left_ = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (first == 0xe0) low_ = 0xa0;
  if (first == 0xed) high_ = 0x9f;
  if (first == 0xf0) low_ = 0x90;
  if (first == 0xf4) high_ = 0x8f;
  return first >= 0xc2 && first <= 0xf4;
}

}  // namespace netdyno::load
