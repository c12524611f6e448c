// The library below the contestants that bring their own epoll loop, with std::function as the continuation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Next = std::function<void()>;
using std::chrono::milliseconds;

PROPERTY(Fifo, GivesBackWhatWasPushedInOrder) {
  Fifo<int> fifo;
  std::deque<int> model;
  int pushed = 0;
  for (const bool push : draw::flips()) {
    if (push) {
      fifo.push(pushed);
      model.push_back(pushed++);
    } else if (!model.empty()) {
      RC_ASSERT(fifo.pop() == model.front());
      model.pop_front();
    }
    RC_ASSERT(fifo.size() == model.size());
    RC_ASSERT(fifo.empty() == model.empty());
    for (std::size_t i = 0; i < model.size(); ++i) RC_ASSERT(fifo[i] == model[i]);
  }
}

class LoopTest : public testing::Test {
 protected:
  Next note(int what) {
    return [this, what] { noted.push_back(what); };
  }

  Loop<Next> loop;
  std::vector<int> noted;
};

TEST_F(LoopTest, CallsInOrderAndNeverFromWithinACall) {
  loop.call_soon([this] {
    loop.call_soon(note(3));
    noted.push_back(1);
  });
  loop.call_soon(note(2));
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(1, 2));
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(1, 2, 3));
}

TEST_F(LoopTest, WhatIsCalledOffIsNotCalled) {
  const auto start = Loop<Next>::Clock::now();
  const Alarm first = loop.call_at(start + milliseconds{1}, note(1));
  EXPECT_TRUE(loop.cancel(first));
  EXPECT_FALSE(loop.cancel(first));
  loop.call_at(start + milliseconds{2}, note(2));
  while (noted.empty()) loop.turn();
  const Alarm second = loop.call_at(start, note(3));  // in the place of one of them
  EXPECT_FALSE(loop.cancel(first));
  while (noted.size() < 2) loop.turn();
  EXPECT_FALSE(loop.cancel(second));
  EXPECT_THAT(noted, ElementsAre(2, 3));
}

TEST_F(LoopTest, TimersGoOffInTheOrderOfTheirDeadlinesAndNotBefore) {
  const auto start = Loop<Next>::Clock::now();
  loop.call_at(start + milliseconds{20}, note(2));
  loop.call_at(start + milliseconds{5}, note(1));
  while (noted.empty()) loop.turn();
  EXPECT_GE(Loop<Next>::Clock::now() - start, milliseconds{5});
  while (noted.size() < 2) loop.turn();
  EXPECT_GE(Loop<Next>::Clock::now() - start, milliseconds{20});
  EXPECT_THAT(noted, ElementsAre(1, 2));
}

TEST_F(LoopTest, AnEarlierDeadlineThatComesLaterIsNotLate) {
  const auto start = Loop<Next>::Clock::now();
  loop.call_at(start + std::chrono::hours{1}, note(2));
  loop.call_soon(note(0));
  loop.turn();  // the alarm is set to the hour now
  loop.call_at(start + milliseconds{5}, note(1));
  while (noted.size() < 2) loop.turn();
  EXPECT_THAT(noted, ElementsAre(0, 1));
}

TEST_F(LoopTest, LongWorkTakesTurns) {
  const Next burn{[] { burn_cpu(milliseconds{2}); }};
  loop.in_a_turn_for_long_work(burn);
  loop.in_a_turn_for_long_work(note(1));
  loop.in_a_turn_for_long_work(burn);
  loop.in_a_turn_for_long_work(note(2));
  loop.call_soon(note(0));
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(0));
  while (noted.size() < 3) loop.turn();
  EXPECT_THAT(noted, ElementsAre(0, 1, 2));
}

TEST_F(LoopTest, ShortWorkIsDoneInOneTurnUntilItIsLong) {
  constexpr std::size_t many = 1000;  // of 20 us each: 20 ms, which is 20 turns
  for (std::size_t i = 0; i < many; ++i)
    loop.in_a_turn_for_long_work([this] {
      burn_cpu(std::chrono::microseconds{20});
      noted.push_back(1);
    });
  std::size_t turns = 0;
  for (; noted.size() < many; ++turns) loop.turn();
  EXPECT_LT(turns, many / 5);
  EXPECT_GT(turns, many / 60);
}

TEST_F(LoopTest, AGateIsReportedOncePerWait) {
  const UniqueFd event{eventfd(1, EFD_CLOEXEC)};
  Gate<Next> gate{loop, event.get()};
  gate.when_readable(note(1));
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(1));
  loop.call_soon(note(0));  // or the turn would wait for ever: the event is there still, but without a waiter
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(1, 0));
  gate.when_readable(note(2));
  loop.turn();
  EXPECT_THAT(noted, ElementsAre(1, 0, 2));
}

struct Client final : EpollConnection<Next> {
  using EpollConnection::EpollConnection;
};

/// A chat server's connections, and the peers at their other ends.
class ConnectionTest : public LoopTest {
 protected:
  ConnectionTest() {
    options.workload = Workload::chat;
    options.outbox_limit = 1000;
  }

  Client& connect() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    peers.emplace_back(ends[0]);
    auto client = std::make_unique<Client>(UniqueFd{ends[1]}, loop, options, counters);
    EXPECT_TRUE(client->watch());
    Client& kept = *client;
    clients.add(std::move(client));
    return kept;
  }

  static SharedFrame frame(std::size_t size) {
    return std::make_shared<const Frame>(Frame{std::string(size, 'x'), frame_header_size});
  }

  /// The bytes that have arrived at a peer.
  std::string taken(std::size_t peer) const {
    std::string bytes(1 << 20, '\0');
    const ssize_t n = recv(peers[peer].get(), bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }

  ServerOptions options;
  Counters counters;
  std::vector<UniqueFd> peers;
  Roster<Client> clients;
};

TEST_F(ConnectionTest, ABroadcastLeavesAtTheEndOfTheTurnForAllButTheSender) {
  Client& sender = connect();
  connect();
  clients.broadcast(frame(10), &sender);
  clients.broadcast(frame(20), nullptr);
  EXPECT_THAT(taken(1), IsEmpty());
  clients.end_turn();
  EXPECT_EQ(taken(0).size(), 20U);
  EXPECT_EQ(taken(1).size(), 30U);
}

TEST_F(ConnectionTest, AReaderThatStopsReadingIsGivenUpAndCountedOnce) {
  Client& client = connect();
  while (!client.broken()) {
    clients.broadcast(frame(500), nullptr);
    clients.end_turn();
  }
  clients.broadcast(frame(500), nullptr);
  EXPECT_EQ(counters.totals().slow_closed, 1U);
  EXPECT_GT(taken(0).size(), 1000U);  // the kernel's buffer was used before the outbox
}

TEST_F(ConnectionTest, ALargeFrameIsNoSlowReaderWhereTheKernelTakesIt) {
  Client& client = connect();
  clients.broadcast(frame(50'000), nullptr);
  clients.end_turn();
  EXPECT_FALSE(client.broken());
  EXPECT_EQ(taken(0).size(), 50'000U);
}

TEST_F(ConnectionTest, OneFrameMayAlwaysWaitAndNoMoreBesideIt) {
  Client& client = connect();
  clients.broadcast(frame(4 << 20), nullptr);
  clients.end_turn();
  EXPECT_FALSE(client.broken());
  EXPECT_FALSE(client.all_sent());
  clients.broadcast(frame(10), nullptr);
  EXPECT_TRUE(client.broken());
}

TEST_F(ConnectionTest, WhoWaitsForItsRepliesToBeSentIsTold) {
  Client& client = connect();
  const std::string replies(4 << 20, 'r');
  client.send(replies);
  ASSERT_FALSE(client.all_sent());
  client.when_sent(note(1));
  std::size_t arrived = 0;
  while (noted.empty()) {
    arrived += taken(0).size();
    loop.turn();
  }
  while (arrived < replies.size()) {
    const std::size_t more = taken(0).size();
    ASSERT_GT(more, 0U);
    arrived += more;
  }
  EXPECT_TRUE(client.all_sent());
}

TEST_F(ConnectionTest, ReadsOncePerTurnAndWaitsOnlyWhenAllIsRead) {
  Client& client = connect();
  std::vector<char> small(8);
  const Next on_input = [&] {
    client.receive(small);
    noted.push_back(1);
  };
  ASSERT_EQ(write(peers[0].get(), "\0\0\0\x0cmore than 8", 16), 16);
  client.when_readable(on_input);
  loop.turn();
  EXPECT_EQ(noted.size(), 1U);
  EXPECT_TRUE(client.effects.empty());
  client.when_readable(on_input);  // no edge comes for the rest: it is remembered
  loop.turn();
  EXPECT_EQ(noted.size(), 2U);
  EXPECT_EQ(counters.totals().requests, 1U);
}

TEST_F(ConnectionTest, WhoIsRemovedStaysUntilTheEndOfTheTurn) {
  Client& first = connect();
  connect();
  Client& third = connect();
  clients.remove(first);
  clients.remove(third);
  clients.broadcast(frame(5), nullptr);
  clients.end_turn();
  clients.broadcast(frame(7), nullptr);
  clients.end_turn();
  EXPECT_EQ(taken(0).size(), 5U);
  EXPECT_EQ(taken(1).size(), 12U);
  EXPECT_EQ(taken(2).size(), 5U);
  EXPECT_FALSE(clients.empty());
}

TEST(Grace, LastsFromTheFirstStart) {
  Grace grace;
  EXPECT_FALSE(grace.over());
  EXPECT_EQ(grace.end(), Grace::Clock::time_point::max());
  grace.start();
  const auto end = grace.end();
  EXPECT_LE(end, Grace::Clock::now() + shutdown_grace);
  grace.start();
  EXPECT_EQ(grace.end(), end);
}

TEST(BurnCpuUnless, IsCutShort) {
  int calls = 0;
  EXPECT_FALSE(burn_cpu_unless([&] { return ++calls == 2; }, std::chrono::hours{1}));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(burn_cpu_unless([] { return false; }, milliseconds{25}));
}

}  // namespace
}  // namespace netdyno
