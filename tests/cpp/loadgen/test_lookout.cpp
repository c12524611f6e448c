#include "loadgen/lookout.hpp"

#include <gtest/gtest.h>

namespace netdyno::load {
namespace {

constexpr Nanos us = 1000;

/// Timers that are 10 us late, each tenth 20 us.
void wake(Lookout& lookout, int times) {
  for (int i = 0; i < times; ++i) lookout.note_wake(i % 10 == 0 ? 20 * us : 10 * us);
}

TEST(Lookout, LearnsHowLateTimersAre) {
  for (const Nanos before : {0 * us, 100 * us}) {
    Lookout lookout{before, 1000 * us, true};
    wake(lookout, 2000);
    EXPECT_GE(lookout.early(), 9 * us);
    EXPECT_LE(lookout.early(), 21 * us);
  }
}

TEST(Lookout, IsNoLongerThanItMayBe) {
  Lookout lookout{100 * us, 5 * us, true};
  EXPECT_EQ(lookout.early(), 5 * us);
  for (int i = 0; i < 1000; ++i) lookout.note_wake(1000 * us);
  EXPECT_EQ(lookout.early(), 5 * us);
  Lookout of_the_worst{0, 1000 * us, true};
  for (int i = 0; i < 1000; ++i) of_the_worst.note_wake(1000 * us);
  EXPECT_EQ(of_the_worst.early(), 100 * us);
}

TEST(Lookout, StaysAsItIsUnlessItLearns) {
  Lookout lookout{30 * us, 1000 * us, false};
  wake(lookout, 2000);
  EXPECT_EQ(lookout.early(), 30 * us);
  EXPECT_EQ(Lookout{}.early(), 0);
}

int looks(ReplyLookout& lookout, int waits, bool found) {
  int count = 0;
  for (int i = 0; i < waits; ++i) {
    if (!lookout.decide_to_poll()) continue;
    ++count;
    lookout.note_poll(found);
  }
  return count;
}

TEST(ReplyLookout, GoesOnWhileItPaysAndTriesAgain) {
  ReplyLookout lookout{true, true};
  EXPECT_EQ(looks(lookout, 1000, true), 1000);
  EXPECT_LT(looks(lookout, 6400, false), 200);
  EXPECT_GT(looks(lookout, 6400, true), 6000);
}

TEST(ReplyLookout, IsAlwaysThereOrNeverWhereSomebodySaysSo) {
  ReplyLookout always{true, false};
  EXPECT_EQ(looks(always, 1000, false), 1000);
  ReplyLookout never;
  EXPECT_EQ(looks(never, 1000, true), 0);
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
