#include "lib/session/effects.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

namespace netdyno {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds in_ns(const timeval& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

TEST(BurnCpu, BurnsWhatItIsAskedForAndBurnsItInUserMode) {
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  burn_cpu(200ms);
  getrusage(RUSAGE_THREAD, &after);
  const auto user = in_ns(after.ru_utime) - in_ns(before.ru_utime);
  const auto system = in_ns(after.ru_stime) - in_ns(before.ru_stime);
  EXPECT_GE(user + system, 199ms);  // by its own clock, so however busy the machine is
  EXPECT_GT(user, system);
}

TEST(Effects, AWaitUntilAMomentIsAsLongAsItIsStillAhead) {
  Effects effects{WriteMode::gathered};
  const auto now = std::chrono::steady_clock::now();
  effects.serve(ServiceKind::wait, 3s);
  effects.wait_until(now + 1h);
  effects.wait_until(now - 1s);
  auto effect = effects.begin();
  EXPECT_EQ((effect++)->remaining(), 3s);
  EXPECT_LE(effect->remaining(), 1h);
  EXPECT_GT((effect++)->remaining(), 59min);
  EXPECT_EQ(effect->remaining(), 0s);
}

TEST(Effects, GatheredRepliesShareAWriteAndSplitOnesDoNot) {
  Effects gathered{WriteMode::gathered};
  gathered.reply("head", "body");
  gathered.reply("head", "body");
  ASSERT_EQ(std::distance(gathered.begin(), gathered.end()), 1);
  EXPECT_EQ(gathered.bytes(*gathered.begin()), "headbodyheadbody");

  Effects split{WriteMode::split};
  split.reply("head", "body");
  ASSERT_EQ(std::distance(split.begin(), split.end()), 2);
  EXPECT_EQ(split.bytes(*split.begin()), "head");
}

}  // namespace
}  // namespace netdyno
