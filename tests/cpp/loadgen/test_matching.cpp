#include <gtest/gtest.h>

#include "lib/measure/recorder.hpp"
#include "lib/measure/timeline.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/match/matching.hpp"
#include "loadgen/plan/schedule.hpp"

namespace netdyno::load {
namespace {

/// Two open connections over a transport that may lose messages.
class MatchingTest : public testing::Test {
 protected:
  static LoadPlan two_clients() {
    LoadPlan plan;
    plan.url.transport = "udp";
    plan.connections = 2;
    return plan;
  }

  MatchingTest() {
    for (Connection& connection : clients_.connections) connection.state = Connection::State::open;
    clients_.open = 2;
  }

  void send(std::uint32_t number, Nanos moment) {
    clients_[number].flight.intend(moment);
    clients_[number].flight.send(moment);
    ++clients_.waiting;
  }

  const LoadPlan plan_ = two_clients();
  Clients clients_{ThreadShare{0, 1, 2}};
  Control control_{plan_};
  const std::unique_ptr<Codec> codec_ = make_codec(plan_);
  Timeline timeline_{one_second, 1};
  Recorder recorder_{timeline_};
  Matching matching_{plan_, clients_, control_, *codec_, recorder_};
};

/// A reply that left before its request may be read after it, and no time is negative.
TEST_F(MatchingTest, AnAnswerCameNoSoonerThanItsMessageLeft) {
  const auto schedule = make_schedule(plan_, clients_.share);
  matching_.begin({0, one_second}, *schedule);
  recorder_.set_window({0, one_second});
  send(0, 5'000);
  send(0, 6'000);
  matching_.begin_reading(0, 4'000, true);
  matching_.on_reply({0, 0}, plan_.size);
  matching_.begin_reading(0, 6'500, true);
  matching_.on_reply({0, 1}, plan_.size);
  EXPECT_EQ(recorder_.figures.response.find_percentile(0), 0);
  EXPECT_EQ(recorder_.figures.response.max(), 500);
  EXPECT_TRUE(recorder_.figures.all_timed_by_kernel());
}

/// The schedule of a stream begins when its request leaves, however late that was.
TEST_F(MatchingTest, AChunkIsLateByTheScheduleOfItsRequestAndOneThatIsEarlyIsCounted) {
  const auto schedule = make_schedule(plan_, clients_.share);
  matching_.begin({0, one_second}, *schedule);
  recorder_.set_window({0, one_second});
  clients_[0].flight.intend(1'000);
  clients_[0].flight.send(400'000);
  ++clients_.waiting;
  matching_.begin_reading(0, 400'300, true);
  matching_.on_chunk({0, 0}, 0);
  matching_.begin_reading(0, 400'000 + plan_.every + 700, true);
  matching_.on_chunk({0, 0}, 1);
  EXPECT_EQ(recorder_.figures.chunk_lag.count(), 2U);
  EXPECT_EQ(recorder_.figures.chunk_lag.find_percentile(0), 300);
  EXPECT_EQ(recorder_.figures.chunk_lag.max(), 700);
  EXPECT_EQ(recorder_.figures.chunks_in_window, 2U);
  EXPECT_EQ(recorder_.figures.early_chunks, 0U);
  matching_.on_chunk({0, 0}, 2);
  EXPECT_EQ(recorder_.figures.early_chunks, 1U);
  matching_.on_chunk({0, 1}, 0);  // of a request that has not been sent
  matching_.on_chunk({1, 0}, 0);  // of another client's
  EXPECT_EQ(recorder_.figures.chunk_lag.count(), 3U);
}

/// The drain is over when all that waits is overdue, so neither may count what is no longer awaited.
TEST_F(MatchingTest, OfAConnectionThatIsGoneNothingWaitsOrIsOverdue) {
  send(0, 1'000);
  send(0, 2'000);
  send(1, 3'000);
  EXPECT_EQ(matching_.give_up(clients_[0], 1'500, 4'000), 1U);
  EXPECT_EQ(clients_.overdue, 1U);
  matching_.let_go(0, 5'000);
  EXPECT_EQ(clients_.open, 1U);
  EXPECT_EQ(clients_.waiting, 1U);
  EXPECT_EQ(clients_.overdue, 0U);
  matching_.let_go(1, 6'000);
  EXPECT_EQ(clients_.waiting, 0U);
  EXPECT_EQ(clients_.overdue, 0U);
}

TEST_F(MatchingTest, OfWhatIsGivenUpWithItsConnectionNothingWaitsOrIsOverdue) {
  const auto schedule = make_schedule(plan_, clients_.share);
  matching_.begin({0, 10'000}, *schedule);
  send(0, 1'000);
  send(0, 2'000);
  EXPECT_EQ(matching_.give_up(clients_[0], 1'500, 4'000), 1U);
  EXPECT_EQ(matching_.take_back(0, "", Matching::End::closed, 20'000), 1U);
  EXPECT_EQ(clients_.waiting, 0U);
  EXPECT_EQ(clients_.overdue, 0U);
}

}  // namespace
}  // namespace netdyno::load
