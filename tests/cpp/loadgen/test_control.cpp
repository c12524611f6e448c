#include <gtest/gtest.h>

#include "loadgen/match/control.hpp"
#include "loadgen/plan/plan.hpp"

namespace netdyno::load {
namespace {

LoadPlan plan_of_threads(std::uint32_t threads) {
  LoadPlan plan;
  plan.threads = threads;
  return plan;
}

TEST(Control, TheFirstInterruptEndsTheWindowAndTheSecondTheWaitForAnswers) {
  Control control{plan_of_threads(1)};
  control.plan_window_end(10 * one_second);
  control.interrupt(4 * one_second);
  EXPECT_EQ(control.read_early_end(), 4 * one_second);
  EXPECT_EQ(control.read_give_up(), 5 * one_second);
  control.interrupt(4 * one_second + 1);
  EXPECT_EQ(control.read_early_end(), 4 * one_second);
  EXPECT_EQ(control.read_give_up(), 4 * one_second + 1);
}

TEST(Control, AnInterruptAfterTheWindowEndsTheWaitForAnswersAlone) {
  Control control{plan_of_threads(1)};
  control.plan_window_end(one_second);
  control.interrupt(one_second);
  EXPECT_EQ(control.read_early_end(), never);
  EXPECT_EQ(control.read_give_up(), one_second);
}

TEST(Control, TheEarliestEndOfTheWindowCounts) {
  Control control{plan_of_threads(1)};
  control.end_window(2000);
  control.end_window(3000);
  EXPECT_EQ(control.read_early_end(), 2000);
  control.end_window(1000);
  EXPECT_EQ(control.read_early_end(), 1000);
}

TEST(Control, NoMoreMessagesAreClaimedThanThereAre) {
  LoadPlan plan = plan_of_threads(2);
  plan.count = 2;
  Control control{plan};
  EXPECT_TRUE(control.claim_message());
  EXPECT_FALSE(control.is_count_exhausted());
  EXPECT_TRUE(control.claim_message());
  EXPECT_TRUE(control.is_count_exhausted());
  EXPECT_FALSE(control.claim_message());
  EXPECT_FALSE(control.claim_message()) << "each thread finds that none is left";
}

TEST(Control, TheLastThreadEndsACountAndALoadWithoutConnections) {
  Control control{plan_of_threads(2)};
  EXPECT_FALSE(control.report_answered());
  EXPECT_TRUE(control.report_answered());
  control.report_disconnected(7);
  EXPECT_EQ(control.read_load_end(), never);
  control.report_disconnected(9);
  EXPECT_EQ(control.read_load_end(), 9);
}

TEST(Control, ADrainEndsWhenAllThreadsDrainAndNothingIsOwed) {
  Control control{plan_of_threads(2)};
  control.begin_drain(-1, 3);  // it has received more than its messages bring
  EXPECT_FALSE(control.is_all_delivered()) << "the other thread may still send";
  control.begin_drain(2, 4);
  EXPECT_EQ(control.read_intended(), 7U);
  EXPECT_FALSE(control.is_all_delivered());
  EXPECT_TRUE(control.has_pending_deliveries());
  control.note_delivery();
  EXPECT_TRUE(control.is_all_delivered());
  EXPECT_TRUE(control.wait_for(Control::Milestone::sent, 0));
}

TEST(Control, APartOfARoomWaitsForWhatTheOthersSent) {
  LoadPlan plan = plan_of_threads(1);
  plan.workload = Workload::chat;
  plan.share = {0, 2};
  Control control{plan};
  control.begin_drain(0, 1);
  EXPECT_FALSE(control.is_all_delivered());
  control.add_pending_of_others(1);
  EXPECT_FALSE(control.is_all_delivered());
  control.note_delivery();
  EXPECT_TRUE(control.is_all_delivered());
}

TEST(Control, ASliceBeginsWithNothingOfTheOneBefore) {
  Control control{plan_of_threads(1)};
  control.begin_drain(5, 5);
  control.end_slice(5, true);
  EXPECT_EQ(control.read_sent_in_slice(), 5U);
  EXPECT_TRUE(control.is_stuck());
  EXPECT_TRUE(control.wait_for(Control::Milestone::sliced, 0));
  control.begin_slice();
  EXPECT_EQ(control.read_sent_in_slice(), 0U);
  EXPECT_EQ(control.read_intended(), 0U);
  EXPECT_FALSE(control.has_pending_deliveries());
  EXPECT_FALSE(control.is_all_delivered()) << "no thread drains yet";
  EXPECT_FALSE(control.wait_for(Control::Milestone::sliced, 0));
  EXPECT_FALSE(control.wait_for(Control::Milestone::sent, 0));
}

}  // namespace
}  // namespace netdyno::load
