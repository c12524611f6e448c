#include <gtest/gtest.h>

#include "lib/measure/tick_lag.hpp"

namespace netdyno {
namespace {

TEST(TickLag, CountsEveryTickThatABlockHasSwallowed) {
  constexpr load::Nanos one_ms = 1'000'000;
  TickLag ticks{5 * one_ms};
  EXPECT_EQ(ticks.due(), 15 * one_ms);
  ticks.record(14 * one_ms);
  EXPECT_EQ(ticks.lag().count(), 0U);
  ticks.record(15 * one_ms);
  EXPECT_EQ(ticks.lag().max(), 0);
  ticks.record(70 * one_ms);  // those of 25, 35, 45, 55 and 65 ms
  EXPECT_EQ(ticks.lag().count(), 6U);
  EXPECT_NEAR(static_cast<double>(ticks.lag().max()), 45e6, 45e3);
  EXPECT_EQ(ticks.due(), 75 * one_ms);
}

}  // namespace
}  // namespace netdyno
