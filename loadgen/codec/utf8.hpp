#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace netdyno::load {

/// Checks that a text which comes in pieces is UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above
/// U+10FFFF.
class Utf8 {
 public:
  /// Takes the next piece. Returns how many of its bytes are UTF-8: where that is not all, nothing more can be taken.
  std::size_t take(std::string_view piece);
  /// Whether the text may end here.
  bool is_whole() const { return left_ == 0; }

 private:
  bool begin(unsigned char first);

  unsigned left_ = 0;                       // bytes that the character still has
  unsigned char low_ = 0x80, high_ = 0xbf;  // the next one lies between
};

}  // namespace netdyno::load
