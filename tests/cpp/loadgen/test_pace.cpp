#include "loadgen/plan/pace.hpp"

#include <gtest/gtest.h>

namespace netdyno::load {
namespace {

constexpr Nanos s = one_second;
using Steps = std::vector<RateStep>;

TEST(Rates, AreNumbersWithUnits) {
  EXPECT_EQ(parse_rate("5000"), 5000);
  EXPECT_EQ(parse_rate("2.5"), 2.5);
  EXPECT_EQ(parse_rate("20k"), 20'000);
  EXPECT_EQ(parse_rate("1.5M"), 1.5e6);
  for (const char* text : {"", "k", "20K", "11M", "0", "-1k", "1kk", "1 k", "nan", "0.0000001k"})
    EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Rates, MayBeStepsAndRamps) {
  EXPECT_EQ(parse_rates("5k")->steps, (Steps{{5000, 5000, 0}}));
  EXPECT_EQ(parse_rates("1k,5k,20k/10s")->steps, (Steps{{1e3, 1e3, 10 * s}, {5e3, 5e3, 10 * s}, {2e4, 2e4, 10 * s}}));
  EXPECT_EQ(parse_rates("1k..20k/30s,20k/1m")->steps, (Steps{{1e3, 2e4, 30 * s}, {2e4, 2e4, 60 * s}}));
  EXPECT_FALSE(parse_rates("5k/10s")->per_connection);
  EXPECT_TRUE(parse_rates("100/conn")->per_connection);
  EXPECT_EQ(parse_rates("10..200/conn/30s")->steps, (Steps{{10, 200, 30 * s}}));
  for (const char* text : {"1k,5k", "1k..5k", "1k..5k/", "1k/10", "1k..5k/0s", "1k,,5k/1s", "..5k/1s", "1k../1s", ",",
                           "1k..2k..3k/1s", "1k/1s,2k", "5/connection"})
    EXPECT_FALSE(parse_rates(text)) << text;
}

TEST(Rates, OfStepsHaveAMeanAndAMost) {
  const Steps steps{{1000, 3000, 2 * s}, {6000, 6000, s}};
  EXPECT_EQ(length_of(steps), 3 * s);
  EXPECT_DOUBLE_EQ(mean_hz(steps), 10'000 / 3.0);
  EXPECT_EQ(fastest_hz(steps), 6000);
  EXPECT_DOUBLE_EQ(messages_until(steps, s), 1500);
  EXPECT_DOUBLE_EQ(messages_until(steps, 2 * s + s / 2), 7000);
  EXPECT_DOUBLE_EQ(messages_until(steps, 9 * s), 10'000);
}

TEST(Pace, IsTheFirstRateUntilTheStepsBegin) {
  const Pace pace{{{1000, 1000, s}, {4000, 4000, s}}, s / 2};
  EXPECT_EQ(pace.due_after(0), 0);
  EXPECT_EQ(pace.due_after(500), s / 2);
  EXPECT_EQ(pace.due_after(1500), s + s / 2);
  EXPECT_EQ(pace.due_after(1504), s + s / 2 + s / 1000);
  EXPECT_EQ(pace.due_after(5500), 2 * s + s / 2) << "and after them the last";
  EXPECT_EQ(pace.due_after(9500), 3 * s + s / 2);
}

/// From 1000/s to 3000/s in 2 s: half of the time has brought 1500 of the 4000.
TEST(Pace, RisesAndFallsEvenlyInARamp) {
  const Pace up{{{1000, 3000, 2 * s}}, 0};
  EXPECT_EQ(up.due_after(1500), s);
  EXPECT_EQ(up.due_after(4000), 2 * s);
  const Pace down{{{3000, 1000, 2 * s}}, 0};
  EXPECT_EQ(down.due_after(2500), s);
  EXPECT_EQ(down.due_after(4000), 2 * s);
}

TEST(Pace, NeverGoesBack) {
  const Pace pace{{{10, 5000, s}, {5000, 20, s}, {20, 20, s}}, s / 10};
  Nanos before = 0;
  for (int message = 0; message < 5100; ++message) {
    const Nanos due = pace.due_after(message);
    ASSERT_GE(due, before) << message;
    before = due;
  }
}

}  // namespace
}  // namespace netdyno::load
