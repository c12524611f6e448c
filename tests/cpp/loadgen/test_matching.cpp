#include <gtest/gtest.h>

#include "lib/measure/recorder.hpp"
#include "lib/measure/timeline.hpp"
#include "loadgen/clients.hpp"
#include "loadgen/control.hpp"
#include "loadgen/matching.hpp"
#include "loadgen/schedule.hpp"

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

  void send(std::uint32_t number, Nanos at) {
    clients_[number].flight.intend(at);
    clients_[number].flight.send(at);
    ++clients_.waiting;
  }

  const LoadPlan plan_ = two_clients();
  Clients clients_{Slice{0, 1, 2}};
  Control control_{1};
  const std::unique_ptr<Codec> codec_ = make_codec(plan_);
  Timeline timeline_{one_second, 1};
  Recorder recorder_{timeline_};
  Matching matching_{plan_, clients_, control_, *codec_, recorder_};
};

/// The drain is over when all that waits is overdue, so neither may count what nobody waits for any more.
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

}  // namespace
}  // namespace netdyno::load
