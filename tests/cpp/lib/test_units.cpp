#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lib/cli/units.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using std::chrono::nanoseconds;

TEST(Duration, TakesEveryUnit) {
  EXPECT_EQ(parse_duration("7ns"), nanoseconds{7});
  EXPECT_EQ(parse_duration("250us"), nanoseconds{250'000});
  EXPECT_EQ(parse_duration("5ms"), nanoseconds{5'000'000});
  EXPECT_EQ(parse_duration("1.5s"), nanoseconds{1'500'000'000});
  EXPECT_EQ(parse_duration("2m"), nanoseconds{120'000'000'000});
  EXPECT_EQ(parse_duration("0"), nanoseconds{0});
}

TEST(Duration, RefusesWhatHasNoClearMeaning) {
  for (const char* text : {"", "5", "ms", "-1s", "1 s", "1h", "1S", "inf", "infs", "nan", "nans", "1e999s", "1s ",
                           " 1s", "1ss", "0x1s", "9e18s", "--1s", "1,5s"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << '\'' << text << '\'';
}

TEST(Bytes, TakesPowersOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("17B"), 17U);
  EXPECT_EQ(parse_bytes("16KiB"), 16U << 10);
  EXPECT_EQ(parse_bytes("3MiB"), 3U << 20);
  EXPECT_EQ(parse_bytes("1GiB"), 1U << 30);
}

TEST(Bytes, RefusesWhatHasNoClearMeaning) {
  for (const char* text : {"", "KiB", "-1", "+1", "1.5KiB", "16k", "16KB", "1 KiB", "1kib", "1KiB ", "0x10",
                           "18446744073709551616", "18446744073709551615KiB", "17179869184GiB"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << '\'' << text << '\'';
}

TEST(BitRate, TakesTheDecimalUnitsOfTc) {
  EXPECT_EQ(parse_bit_rate("9600bit"), 9'600U);
  EXPECT_EQ(parse_bit_rate("56kbit"), 56'000U);
  EXPECT_EQ(parse_bit_rate("10mbit"), 10'000'000U);
  EXPECT_EQ(parse_bit_rate("2gbit"), 2'000'000'000U);
}

TEST(BitRate, RefusesWhatHasNoClearMeaning) {
  for (const char* text :
       {"", "10", "0mbit", "-1mbit", "1.5mbit", "10mbps", "10Mbit", "10 mbit", "mbit", "99999999999gbit"})
    EXPECT_EQ(parse_bit_rate(text), std::nullopt) << '\'' << text << '\'';
}

PROPERTY(Duration, WholeNumbersOfEveryUnitAreExact) {
  const auto count = draw::between<std::int64_t>(0, 1'000'000);
  const auto [unit, ns] = draw::one_of<std::pair<std::string, std::int64_t>>(
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}});
  RC_ASSERT(parse_duration(std::to_string(count) + unit) == nanoseconds{count * ns});
}

PROPERTY(Duration, AnyTextIsRefusedOrNotNegative) {
  // Letters that numbers and units are made of: text of these often comes close to a duration.
  const auto text = draw::text_of("0123456789.eE+-nusmifa ");
  RC_ASSERT(parse_duration(text).value_or(nanoseconds{0}).count() >= 0);
}

PROPERTY(Bytes, OverflowIsRefusedNeverWrapped) {
  const auto count = draw::any<std::uint64_t>();
  const auto [unit, size] = draw::one_of<std::pair<std::string, std::uint64_t>>(
      {{"", 1}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}});
  const auto parsed = parse_bytes(std::to_string(count) + unit);
  const bool fits = count <= std::numeric_limits<std::uint64_t>::max() / size;
  RC_ASSERT(parsed.has_value() == fits);
  if (fits) {
    RC_ASSERT(*parsed == count * size);
  }
}

}  // namespace
}  // namespace netdyno
