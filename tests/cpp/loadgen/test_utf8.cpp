#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "loadgen/codec/utf8.hpp"

namespace netdyno::load {
namespace {

/// In one piece, and byte by byte, at each place of a word.
bool is_utf8(std::string_view text) {
  bool whole = true;
  for (std::size_t before = 0; before < 9; ++before) {
    const std::string padded = std::string(before, 'x') + std::string{text} + std::string(before, 'y');
    Utf8 at_once, by_bytes;
    const std::size_t valid = at_once.take(padded);
    std::size_t valid_by_bytes = 0;
    while (valid_by_bytes < padded.size() && by_bytes.take({&padded[valid_by_bytes], 1}) == 1) ++valid_by_bytes;
    EXPECT_EQ(valid_by_bytes, valid) << padded;
    EXPECT_EQ(by_bytes.is_whole(), at_once.is_whole()) << padded;
    whole = whole && valid == padded.size() && at_once.is_whole();
  }
  return whole;
}

TEST(Utf8, TakesTheFirstAndTheLastCharacterOfEachLength) {
  for (const char* text : {"", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
}

TEST(Utf8, TakesNothingElse) {
  for (const char* text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2x", "\xc2\xc2", "\xe0\x9f\xbf", "\xe0\xa0", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace netdyno::load
