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
    const bool is_text = at_once.take(padded) && at_once.is_whole();
    bool is_text_by_bytes = true;
    for (const char byte : padded) is_text_by_bytes = is_text_by_bytes && by_bytes.take({&byte, 1});
    EXPECT_EQ(is_text_by_bytes && by_bytes.is_whole(), is_text) << padded;
    whole = whole && is_text;
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
