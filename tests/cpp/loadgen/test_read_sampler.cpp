#include "loadgen/transport/read_sampler.hpp"

#include <gtest/gtest.h>

#include <array>

namespace netdyno::load {
namespace {

std::uint64_t taken_of(ReadSampler& sampler, int reads) {
  std::uint64_t taken = 0;
  for (int i = 0; i < reads; ++i) taken += sampler.take();
  return taken;
}

TEST(ReadSampler, AsksAtMostSoOftenASecondHoweverManyReadsThereAre) {
  ReadSampler sampler{1};
  sampler.settle(0);
  taken_of(sampler, 100'000);
  EXPECT_EQ(sampler.settle(one_second / 2), 20U) << "of 200,000 a second";
  EXPECT_NEAR(static_cast<double>(taken_of(sampler, 100'000)), 5'000.0, 200.0);
  sampler.settle(0);
  taken_of(sampler, 19'000);
  EXPECT_EQ(sampler.settle(one_second), 2U) << "not one, which were nearly twice as many";
}

TEST(ReadSampler, AsksWithEachReadWhereThereAreFew) {
  ReadSampler sampler{1};
  taken_of(sampler, 1000);
  EXPECT_EQ(sampler.settle(one_second), 1U);
  EXPECT_EQ(taken_of(sampler, 500), 500U);
}

TEST(ReadSampler, AsksWithEachReadWhereThatIsWanted) {
  ReadSampler sampler{1, true};
  EXPECT_EQ(taken_of(sampler, 1000), 1000U);
  sampler.settle(one_second / 100);
  EXPECT_EQ(taken_of(sampler, 1000), 1000U);
}

TEST(ReadSampler, KeepsItsGapWhereNothingWasCounted) {
  ReadSampler sampler{1};
  const std::uint64_t gap = sampler.settle(0);
  taken_of(sampler, 7);
  EXPECT_EQ(sampler.settle(0), gap);
}

/// A fixed gap of ten would always ask the same ten of a hundred connections that take turns.
TEST(ReadSampler, AsksEveryConnectionOfThoseThatTakeTurns) {
  ReadSampler sampler{1};
  taken_of(sampler, 100'000);
  ASSERT_EQ(sampler.settle(one_second), 10U);
  std::array<bool, 100> is_stamped{};
  for (std::size_t i = 0; i < 20'000; ++i)
    if (sampler.take()) is_stamped[i % is_stamped.size()] = true;
  EXPECT_TRUE(std::ranges::all_of(is_stamped, [](bool stamped) { return stamped; }));
}

}  // namespace
}  // namespace netdyno::load
