#include "lib/measure/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using Values = std::vector<std::int64_t>;

/// Values of every magnitude: an exponent first, so that small ones are as likely as large ones.
std::int64_t any_nanoseconds() {
  return std::min(draw::between<std::int64_t>(0, std::int64_t{1} << draw::between(0, 42)), Histogram::highest);
}

Histogram recorded(const Values& values) {
  Histogram histogram;
  for (const auto value : values) histogram.record(value);
  return histogram;
}

TEST(Histogram, EmptyReadsZeroEverywhere) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.find_percentile(50), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  const Histogram histogram = recorded({0, 1, 2, 1000, 2047});
  EXPECT_EQ(histogram.find_percentile(0), 0);
  EXPECT_EQ(histogram.find_percentile(60), 2);
  EXPECT_EQ(histogram.max(), 2047);
  EXPECT_EQ(histogram.mean(), 610);
}

TEST(Histogram, MoreThanAnHourCountsAsAnHour) {
  const Histogram histogram = recorded({Histogram::highest * 2});
  EXPECT_NEAR(static_cast<double>(histogram.max()), static_cast<double>(Histogram::highest), 3.6e9);
  EXPECT_EQ(histogram.mean(), static_cast<double>(Histogram::highest));
}

TEST(HistogramDeathTest, NegativeDurationEndsTheProgram) { EXPECT_DEATH(recorded({-1}), "negative duration -1 ns"); }

PROPERTY(Histogram, PercentilesAreWithinATenthOfAPercentOfTheSortedValues) {
  const auto values = draw::many(any_nanoseconds, 1);
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const Histogram histogram = recorded(values);
  for (const double percentile : {1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const double rank = std::floor(percentile * static_cast<double>(sorted.size()) / 100 + 0.5);
    const auto exact = static_cast<double>(sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
    const auto read = static_cast<double>(histogram.find_percentile(percentile));
    RC_ASSERT(read >= exact);
    RC_ASSERT(read <= exact * 1.001);
  }
}

PROPERTY(Histogram, MergedEqualsRecordedTogether) {
  const auto a = draw::many(draw::any<unsigned>);
  const auto b = draw::many(draw::any<unsigned>);
  Values first(a.begin(), a.end());
  const Values second(b.begin(), b.end());
  Histogram merged = recorded(first);
  merged.add(recorded(second));
  first.insert(first.end(), second.begin(), second.end());
  const Histogram together = recorded(first);
  RC_ASSERT(merged.count() == together.count());
  RC_ASSERT(merged.mean() == together.mean());
  RC_ASSERT(merged.encode() == together.encode());
}

TEST(Histogram, ClearedIsAsNew) {
  Histogram histogram = recorded({5, 70000, 123456789});
  histogram.clear();
  histogram.record(7);
  EXPECT_EQ(histogram.encode(), recorded({7}).encode());
  EXPECT_EQ(histogram.mean(), 7);
}

}  // namespace
}  // namespace netdyno
