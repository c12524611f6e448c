// The UDP transport alone: what its events and figures promise, without a load.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "loadgen/transport/transport.hpp"
#include "tests/cpp/loadgen/fake_datagram_server.hpp"

namespace netdyno::load {
namespace {

using Server = FakeDatagramServer;

struct SeenMessages : TransportEvents {
  void on_connected(std::uint32_t) override { ++connected; }
  void on_connect_failed(std::uint32_t, ConnectFailure failure, int) override { failures.push_back(failure); }
  void on_received(std::uint32_t, std::string_view, KernelStamp) override { FAIL() << "messages come as messages"; }
  void on_messages(std::uint32_t, std::span<const std::string_view> batch,
                   std::span<const KernelStamp> stamps) override {
    arrived.insert(arrived.end(), stamps.begin(), stamps.end());
    largest_batch = std::max(largest_batch, batch.size());
    for (const std::string_view message : batch) messages.emplace_back(message);
  }
  void on_writable(std::uint32_t) override {}
  void on_closed(std::uint32_t, CloseReason reason) override { closed.push_back(reason); }

  int connected = 0;
  std::vector<ConnectFailure> failures;
  std::vector<std::string> messages;
  std::vector<KernelStamp> arrived;
  std::vector<CloseReason> closed;
  std::size_t largest_batch = 0;
};

struct Client {
  explicit Client(const Url& url, std::size_t size = 31, std::uint32_t connections = 1) {
    plan.url = url;
    plan.size = size;
    plan.connections = connections;
    transport = make_transport(plan, ThreadShare{0, 1, connections});
    for (std::uint32_t i = 0; i < connections; ++i) transport->connect(i, seen);
  }

  void wait_until(const std::function<bool()>& enough) {
    while (!enough()) transport->wait(now_ns() + 10'000'000, seen);
  }

  LoadPlan plan;
  std::unique_ptr<Transport> transport;
  SeenMessages seen;
};

std::string numbered(int number) { return std::to_string(1000 + number) + std::string(27, 'x'); }

TEST(UdpTransport, SendsAndReceivesInBatchesAndKeepsTheirOrder) {
  constexpr int count = 100;
  std::string all;
  std::vector<std::size_t> ends;
  for (int i = 0; i < count; ++i) ends.push_back((all += numbered(i)).size());
  const Server server{Server::echo};
  Client client{server.url()};
  client.wait_until([&] { return client.seen.connected == 1; });
  EXPECT_EQ(client.transport->send_messages(0, all, ends), all.size());
  client.wait_until([&] { return client.seen.messages.size() >= count; });
  ASSERT_EQ(client.seen.messages.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) EXPECT_EQ(client.seen.messages[static_cast<std::size_t>(i)], numbered(i));
}

/// Answers that are read together have waited for differently long.
TEST(UdpTransport, SaysWhenEachMessageArrived) {
  constexpr int count = 40;
  const Server server{[](int, int, const std::string& text) { return std::vector<Server::Answer>(count, {text}); }};
  Client client{server.url()};
  client.wait_until([&] { return client.seen.connected == 1; });
  client.transport->sample_arrivals(one_second);  // few reads so far: all that follow ask
  const auto before = WallClock::read();
  client.transport->send(0, numbered(0));
  client.wait_until([&] { return client.seen.messages.size() == count; });
  const auto after = WallClock::read();
  ASSERT_EQ(client.seen.arrived.size(), static_cast<std::size_t>(count));
  const auto is_between = [&](const KernelStamp& stamp) {
    return stamp && *stamp >= before.wall && *stamp <= after.wall;
  };
  EXPECT_TRUE(std::ranges::all_of(client.seen.arrived, is_between));
  EXPECT_TRUE(std::ranges::is_sorted(client.seen.arrived));
  EXPECT_LT(client.seen.arrived.front(), client.seen.arrived.back());
}

/// A datagram without room in the socket's buffer was lost by this program, which says so: what the server sent has
/// come or is counted.
TEST(UdpTransport, CountsWhatItsOwnSocketsDropped) {
  constexpr std::uint64_t count = 1000;
  constexpr std::size_t large = 60'000;
  std::atomic<bool> flooded{false};
  const Server server{[&](int, int, const std::string& text) {
    std::vector<Server::Answer> answers;
    if (text == "?") {  // the datagram after the flood: it has been sent
      flooded = true;
    } else {
      answers.assign(count, {text});
    }
    return answers;
  }};
  Client client{server.url(), large};
  client.wait_until([&] { return client.seen.connected == 1; });
  client.transport->send(0, std::string(large, 'x'));
  client.transport->send(0, "?");
  while (!flooded) std::this_thread::yield();  // and no thread reads
  const std::uint64_t dropped = client.transport->socket_drops();
  EXPECT_GT(dropped, 0U);
  client.wait_until([&] { return client.seen.messages.size() + dropped >= count; });
  EXPECT_EQ(client.seen.messages.size() + dropped, count);
  EXPECT_GT(client.seen.largest_batch, 1U);
  client.transport->close(0);
  EXPECT_EQ(client.transport->socket_drops(), dropped) << "also when the socket is closed";
}

TEST(UdpTransport, GivesNoMessageBeforeTheServerKnowsIt) {
  const Server server{[](int, int, const std::string& text) {
                        return std::vector<Server::Answer>{{text, 2}};
                      },
                      [](int client, int hello) {
                        return client == 1 && hello == 0 ? std::nullopt : std::optional{ControlKind::welcome};
                      }};
  Client early{server.url()};
  early.wait_until([&] { return early.seen.connected == 1; });
  Client late{server.url()};
  early.transport->send(0, numbered(0));
  early.wait_until([&] { return early.seen.messages.size() == 1; });
  late.wait_until([&] { return late.seen.connected == 1; });
  EXPECT_TRUE(late.seen.messages.empty());
}

TEST(UdpTransport, EndsAWaitWhenItIsWoken) {
  const Server server{Server::echo};
  Client client{server.url()};
  client.wait_until([&] { return client.seen.connected == 1; });
  std::thread other{[&] { client.transport->wake(); }};
  EXPECT_TRUE(client.transport->wait(now_ns() + 60 * one_second, client.seen));
  other.join();
}

}  // namespace
}  // namespace netdyno::load
