#include "lib/net/arrivals.hpp"

#include <gtest/gtest.h>

namespace netdyno {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t epoch = 1'800'000'000'000 * ms;  // what CLOCK_REALTIME is ahead

WallClock::Reading reading(std::int64_t begin, std::int64_t took = 50, std::int64_t ahead = epoch) {
  return {begin, begin + took / 2 + ahead, begin + took};
}

TEST(WallClock, PutsAStampOnTheMonotonicClock) {
  WallClock clock{reading(1000 * ms)};
  EXPECT_EQ(clock.monotonic(epoch + 1500 * ms, reading(1501 * ms)), 1500 * ms);
}

TEST(WallClock, ConvertsNothingFromWhereTheClockWasSet) {
  for (const std::int64_t step : {-ms, ms}) {
    WallClock clock{reading(1000 * ms)};
    EXPECT_TRUE(clock.monotonic(epoch + 1500 * ms, reading(1501 * ms)));
    EXPECT_FALSE(clock.monotonic(epoch + 1600 * ms, reading(1601 * ms, 50, epoch + step)));
    EXPECT_FALSE(clock.monotonic(epoch + 1700 * ms, reading(1701 * ms))) << "nor where it was set back";
  }
}

/// Whatever ran between the clocks: the clocks are no further apart than the reading allows.
TEST(WallClock, IsNotMisledByAReadingThatWasInterrupted) {
  WallClock clock{reading(1000 * ms)};
  const WallClock::Reading late{1500 * ms, epoch + 1500 * ms + 20, 1520 * ms};
  const WallClock::Reading early{1500 * ms, epoch + 1520 * ms - 20, 1520 * ms};
  EXPECT_TRUE(clock.monotonic(epoch + 1500 * ms, late));
  EXPECT_TRUE(clock.monotonic(epoch + 1500 * ms, early));
}

TEST(WallClock, AgreesWithTheClocksOfThisMachine) {
  WallClock clock;
  const WallClock::Reading now = WallClock::read();
  const auto converted = clock.monotonic(now.wall, WallClock::read());
  ASSERT_TRUE(converted);
  EXPECT_GE(*converted, now.before - 100'000);
  EXPECT_LE(*converted, now.after + 100'000);
}

}  // namespace
}  // namespace netdyno
