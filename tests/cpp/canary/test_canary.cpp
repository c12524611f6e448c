#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include "canary/plan.hpp"
#include "canary/slices.hpp"
#include "canary/workload.hpp"

namespace netdyno::canary {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ExitedWithCode;

std::vector<nanoseconds> slices(std::initializer_list<int> in_milliseconds) {
  std::vector<nanoseconds> times;
  for (const int slice : in_milliseconds) times.emplace_back(milliseconds{slice});
  return times;
}

CanaryPlan parse(std::vector<const char*> options) {
  options.insert(options.begin(), "./path/to/netdyno-canary");
  return parse_plan(static_cast<int>(options.size()), options.data());
}

void expect_bound_to(int core) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(CPU_COUNT(&allowed), 1);
  EXPECT_TRUE(CPU_ISSET(core, &allowed));
}

TEST(Slices, ATypicalOneKnowsNothingOfAnInterruptionAndAllOfThemDo) {
  const PerSecond found = compute_rates(10, slices({1, 1, 96, 1, 1}));
  EXPECT_DOUBLE_EQ(found.typical, 10'000);
  EXPECT_DOUBLE_EQ(found.overall, 500);
}

TEST(Slices, TheFirstIsForNothing) {
  std::size_t done = 0;
  const std::vector<nanoseconds> times = measure_slices(milliseconds{20}, [&done] {
    if (done++ == 0) std::this_thread::sleep_for(milliseconds{40});
    std::this_thread::sleep_for(milliseconds{1});
  });
  EXPECT_EQ(times.size(), done - 1);
  EXPECT_GE(times.size(), 1U);
  nanoseconds all{0};
  for (const nanoseconds time : times) all += time;
  EXPECT_GE(all, milliseconds{20});
}

TEST(Workload, MessagesGoThereAndBackAndThenBothCount) {
  auto [asking, answering] = make_connected_pair();
  std::thread server{[fd = answering.get()] { answer(fd); }};
  const double there_and_back = measure_round_trips(asking.get(), milliseconds{5});
  const auto [there, here] = count_together(asking.get(), milliseconds{5});
  asking.reset();
  server.join();
  EXPECT_GT(there_and_back, 0);
  EXPECT_GT(there, 0);
  EXPECT_GT(here, 0);
}

TEST(Workload, BothSidesMoveToOneCore) {
  auto [asking, answering] = make_connected_pair();
  const int core = sched_getcpu();
  std::thread server{[fd = answering.get(), core] {
    answer(fd);
    expect_bound_to(core);
  }};
  std::thread here{[fd = std::move(asking), core] {
    EXPECT_GT(measure_round_trips_on_one_core(fd.get(), core, milliseconds{5}), 0);
    expect_bound_to(core);
  }};
  here.join();
  server.join();
}

TEST(Workload, WhoAnswersEndsWithTheOtherSide) {
  auto [asking, answering] = make_connected_pair();
  asking.reset();
  answer(answering.get());
}

TEST(Workload, WhoHasLostTheOtherSideSaysSo) {
  auto [asking, answering] = make_connected_pair();
  answering.reset();
  const int fd = asking.get();
  EXPECT_EXIT(measure_round_trips(fd, milliseconds{5}), ExitedWithCode(1),
              "the process that answers has ended|cannot send");
}

TEST(CanaryPlan, WhatIsAskedForIsUnderstood) {
  const auto plan = parse({"--server-cores", "0,2,4095", "--generator-cores", "3", "--realtime", "2", "--exchange",
                           "5ms", "--loop", "1500us"});
  EXPECT_EQ(plan.server_cores, (std::vector<int>{0, 2, 4095}));
  EXPECT_EQ(plan.generator_cores, (std::vector<int>{3}));
  EXPECT_EQ(plan.realtime, 2);
  EXPECT_EQ(plan.exchange, milliseconds{5});
  EXPECT_EQ(plan.loop, std::chrono::microseconds{1500});
}

TEST(CanaryPlan, WithoutOptionsNothingIsPinned) {
  const CanaryPlan plan = parse({});
  EXPECT_TRUE(plan.server_cores.empty());
  EXPECT_TRUE(plan.generator_cores.empty());
  EXPECT_EQ(plan.realtime, 0);
}

TEST(CanaryPlan, WhatCannotBeMeantEndsWithExit2AndOneLine) {
  EXPECT_EXIT(parse({"--server-cores", "x"}), ExitedWithCode(2), "--server-cores");
  EXPECT_EXIT(parse({"--server-cores", "8192", "--generator-cores", "0"}), ExitedWithCode(2), "--server-cores");
  EXPECT_EXIT(parse({"--server-cores", "0"}), ExitedWithCode(2), "want both or neither");
  EXPECT_EXIT(parse({"--realtime", "0"}), ExitedWithCode(2), "--realtime");
  EXPECT_EXIT(parse({"--loop", "0"}), ExitedWithCode(2), "--loop: want more than 0, at most 10s");
  EXPECT_EXIT(parse({"--exchange", "11s"}), ExitedWithCode(2), "--exchange: want more than 0, at most 10s");
}

}  // namespace
}  // namespace netdyno::canary
