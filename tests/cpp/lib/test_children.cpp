#include "lib/server/children.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "lib/server/shared_counters.hpp"

namespace netdyno {
namespace {

using testing::HasSubstr;
using std::chrono_literals::operator""ms;

void wait_for_end(const Children& children) {
  pollfd watched{children.ended(), POLLIN, 0};
  ASSERT_EQ(poll(&watched, 1, 10'000), 1);
}

/// In a child.
void wait_for_signal(int signals) {
  pollfd watched{signals, POLLIN, 0};
  poll(&watched, 1, -1);
}

[[noreturn]] void pause_for_ever() {
  while (true) pause();
}

/// For a process that ends soon. The limit does not bind root.
void allow_no_process() {
  [[maybe_unused]] const int root_only = setresuid(65534, 65534, 65534);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NPROC, &none);
}

TEST(Children, CountIntoTheTotalsOfTheirParent) {
  const SharedCounters counters;
  Children children;
  counters.get().add_request();
  for (std::size_t size : {10U, 200U}) {
    ASSERT_TRUE(children.start([&] {
      counters.get().add_request();
      counters.get().add_bytes_in(size);
    }));
  }
  while (children.count() > 0) {
    wait_for_end(children);
    children.reap();
  }
  EXPECT_EQ(counters.get().totals().requests, 3U);
  EXPECT_EQ(counters.get().totals().bytes_in, 210U);
}

TEST(Children, EndAtATerminationSignal) {
  const UniqueFd signals = termination_signals();
  const SharedCounters counters;
  Children children;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(children.start([&] {
      wait_for_signal(signals.get());
      counters.get().add_request();
    }));
  EXPECT_EQ(children.count(), 3U);
  EXPECT_TRUE(children.finish());
  EXPECT_EQ(children.count(), 0U);
  EXPECT_EQ(counters.get().totals().requests, 3U);
}

TEST(Children, AreKilledWhenTheyDoNotEnd) {
  const UniqueFd signals = termination_signals();  // blocks SIGTERM
  Children children;
  ASSERT_TRUE(children.start(pause_for_ever));
  EXPECT_FALSE(children.finish(20ms));
  EXPECT_EQ(children.count(), 0U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was not reaped";
}

TEST(Children, ThatCrashLeaveTheirCountsAndALine) {
  const SharedCounters counters;
  Children children;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(children.start([&] {
    counters.get().add_request();
    std::raise(SIGKILL);
  }));
  wait_for_end(children);
  EXPECT_EQ(children.reap(), 1U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("was ended by signal 9"));
  EXPECT_EQ(children.count(), 0U);
  EXPECT_EQ(counters.get().totals().requests, 1U);
}

TEST(Children, AreReapedWhereTheirEndsWereIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  Children children;
  ASSERT_TRUE(children.start([] {}));
  wait_for_end(children);
  EXPECT_EQ(children.reap(), 1U);
}

TEST(Children, DieWithTheirParent) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Children children;
    children.start(pause_for_ever);
    std::raise(SIGKILL);
  }
  close(pipe_ends[1]);
  waitpid(parent, nullptr, 0);
  pollfd watched{pipe_ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&watched, 1, 10'000), 1) << "the child lives on and has the other end";
  close(pipe_ends[0]);
}

TEST(Children, AreRefusedWhereThereIsNoProcessLeft) {
  const auto try_to_start = [] {
    allow_no_process();
    Children children;
    const bool started = children.start([] {});
    std::_Exit(started || children.count() > 0 ? 1 : 0);
  };
  EXPECT_EXIT(try_to_start(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace netdyno
