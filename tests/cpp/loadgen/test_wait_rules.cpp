#include "loadgen/wait_rules.hpp"

#include <gtest/gtest.h>

namespace netdyno::load {
namespace {

constexpr Nanos us = 1000;

/// Timers that are 10 us late, each tenth 20 us.
void wake(EarlyWake& early_wake, int times) {
  for (int i = 0; i < times; ++i) early_wake.note_wake(i % 10 == 0 ? 20 * us : 10 * us);
}

TEST(EarlyWake, LearnsHowLateTimersAre) {
  for (const Nanos before : {0 * us, 100 * us}) {
    EarlyWake early_wake{before, 1000 * us, true};
    wake(early_wake, 2000);
    EXPECT_GE(early_wake.early(), 9 * us);
    EXPECT_LE(early_wake.early(), 21 * us);
  }
}

TEST(EarlyWake, IsNoLongerThanItMayBe) {
  EarlyWake early_wake{100 * us, 5 * us, true};
  EXPECT_EQ(early_wake.early(), 5 * us);
  for (int i = 0; i < 1000; ++i) early_wake.note_wake(1000 * us);
  EXPECT_EQ(early_wake.early(), 5 * us);
  EarlyWake of_the_worst{0, 1000 * us, true};
  for (int i = 0; i < 1000; ++i) of_the_worst.note_wake(1000 * us);
  EXPECT_EQ(of_the_worst.early(), 100 * us);
}

TEST(EarlyWake, StaysAsItIsUnlessItLearns) {
  EarlyWake early_wake{30 * us, 1000 * us, false};
  wake(early_wake, 2000);
  EXPECT_EQ(early_wake.early(), 30 * us);
  EXPECT_EQ(EarlyWake{}.early(), 0);
}

int count_polls(ReplySpin& spin, int waits, bool found) {
  int count = 0;
  for (int i = 0; i < waits; ++i) {
    if (!spin.decide_to_poll()) continue;
    ++count;
    spin.note_poll(found);
  }
  return count;
}

TEST(ReplySpin, GoesOnWhileItPaysAndTriesAgain) {
  ReplySpin spin{true, true};
  EXPECT_EQ(count_polls(spin, 1000, true), 1000);
  EXPECT_LT(count_polls(spin, 6400, false), 200);
  EXPECT_GT(count_polls(spin, 6400, true), 6000);
}

TEST(ReplySpin, IsAlwaysThereOrNeverWhereSomebodySaysSo) {
  ReplySpin always{true, false};
  EXPECT_EQ(count_polls(always, 1000, false), 1000);
  ReplySpin never;
  EXPECT_EQ(count_polls(never, 1000, true), 0);
}

TEST(LateReads, LastAWhileAfterAMessage) {
  LateReads reads{true};
  EXPECT_EQ(reads.until(), 0);
  reads.note_sent(5000 * us);
  EXPECT_EQ(reads.until(), 6000 * us);
}

TEST(LateReads, EndWithTheFirstReplyThatCouldNotWait) {
  LateReads reads{true};
  reads.note(true);
  EXPECT_TRUE(reads.allowed());
  reads.note(false);
  reads.note(true);
  reads.note_sent(5000 * us);
  EXPECT_FALSE(reads.allowed());
  EXPECT_EQ(reads.until(), 0);
}

}  // namespace
}  // namespace netdyno::load
