#include "loadgen/connect/loop_clock.hpp"

#include <gtest/gtest.h>

namespace netdyno::load {
namespace {

constexpr Nanos tolerance = 5'000;

/// Reads the clock for `length`, turning every `turn`, between two readings of the system's: whatever interrupts them
/// widens the gap between those, too.
void expect_the_time_of_the_system(LoopClock& clock, Nanos length, Nanos turn) {
  const Nanos end = now_ns() + length;
  Nanos turned = 0;
  for (Nanos before = now_ns(); before < end; before = now_ns()) {
    const bool turns = before - turned >= turn;
    if (turns) turned = before;
    const Nanos reading = turns ? clock.turn() : clock.now();
    const Nanos after = now_ns();
    ASSERT_GE(reading, before - tolerance);
    ASSERT_LE(reading, after + tolerance);
  }
}

class LoopClocks : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !LoopClock::counter_is_the_clock()) GTEST_SKIP() << "the clocksource of this machine is not tsc";
  }
};

TEST_P(LoopClocks, SayTheTimeOfTheSystem) {
  LoopClock clock{GetParam()};
  expect_the_time_of_the_system(clock, 100'000'000, 1'000'000);
}

TEST_P(LoopClocks, SayItInATurnThatTakesLong) {
  LoopClock clock{GetParam()};
  expect_the_time_of_the_system(clock, 20'000'000, 1'000'000);  // by now the rate is known
  expect_the_time_of_the_system(clock, 10'000'000, one_second);
}

TEST_P(LoopClocks, NeverGoBack) {
  LoopClock clock{GetParam()};
  Nanos latest = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const Nanos reading = i % 100 == 0 ? clock.turn() : clock.now();
    ASSERT_GE(reading, latest);
    latest = reading;
  }
}

INSTANTIATE_TEST_SUITE_P(By, LoopClocks, testing::Bool(),
                         [](const auto& test) { return std::string{test.param ? "Counting" : "AskingEveryTime"}; });

}  // namespace
}  // namespace netdyno::load
