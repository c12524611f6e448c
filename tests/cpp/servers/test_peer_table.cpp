// The peers on a transport without connections: every rule of protocol/WIRE.md, with made-up clocks and no socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "tests/cpp/lib/framed.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct Peer {
  explicit Peer(PeerRoom::Place its_place) : place(std::move(its_place)) {}
  PeerRoom::Place place;
};
using Table = PeerTable<std::string, Peer>;
using Action = Table::Ruling::Action;

std::string control(ControlKind kind, std::uint64_t token) {
  const ControlBytes bytes = encode_control({kind, token});
  return {bytes.data(), bytes.size()};
}

/// A table for two, of the workload chat, and a clock that the test moves.
class PeerTableTest : public testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.workload = Workload::chat;
    options.peer_timeout = seconds{30};
    return options;
  }

  Table::Ruling receive(const std::string& from, const std::string& bytes) {
    return table.receive(from, bytes, now, [this](const std::string& key, std::uint64_t token, std::unique_ptr<Peer>) {
      gave_way.emplace_back(key, token);
    });
  }
  Table::Ruling hello(const std::string& from, std::uint64_t token) {
    return receive(from, control(ControlKind::hello, token));
  }
  static std::string answer(const Table::Ruling& ruling) {
    return ruling.answer ? std::string(ruling.answer->data(), ruling.answer->size()) : "";
  }
  std::vector<std::string> expire() {
    std::vector<std::string> expired;
    table.expire(now, [&](const std::string& key, std::uint64_t, std::unique_ptr<Peer>) { expired.push_back(key); });
    return expired;
  }

  /// Makes itself known, and says something.
  Table::Ruling join(const std::string& from, std::uint64_t token) {
    auto ruling = hello(from, token);
    receive(from, frame("text"));
    return ruling;
  }

  Counters counters;
  PeerRoom room{2};
  std::vector<std::pair<std::string, std::uint64_t>> gave_way;
  Table::Clock::time_point now{};
  Table table{options(), room, counters,
              [](const std::string&, PeerRoom::Place place) { return std::make_unique<Peer>(std::move(place)); }};
};

TEST_F(PeerTableTest, AHelloIsWelcomedWithItsTokenAndCountedOnce) {
  const auto first = hello("a", 7);
  EXPECT_EQ(first.action, Action::join);
  EXPECT_EQ(answer(first), control(ControlKind::welcome, 7));
  const auto again = hello("a", 8);
  EXPECT_EQ(again.action, Action::answer);
  EXPECT_EQ(answer(again), control(ControlKind::welcome, 8));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(counters.totals().connections, 1u);
}

TEST_F(PeerTableTest, WhomTheTransportSaysIsGoneIsForgotten) {
  hello("a", 1);
  hello("b", 2);
  EXPECT_NE(table.remove("a"), nullptr);
  EXPECT_EQ(table.remove("a"), nullptr);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(hello("c", 3).action, Action::join);  // in its place
}

TEST_F(PeerTableTest, AMessageOfAKnownPeerIsItsOwn) {
  Peer* const a = hello("a", 1).peer;
  Peer* const b = hello("b", 2).peer;
  EXPECT_NE(a, b);
  const auto ruling = receive("a", frame("text"));
  EXPECT_EQ(ruling.action, Action::message);
  EXPECT_EQ(ruling.peer, a);
  EXPECT_FALSE(ruling.answer);
}

TEST_F(PeerTableTest, AStrangerIsCountedAndNotAnsweredWhateverItSays) {
  hello("a", 1);
  for (const std::string& bytes : {frame("text"), std::string{}, std::string(4, '\0'), control(ControlKind::bye, 1),
                                   control(ControlKind::welcome, 1)}) {
    const auto ruling = receive("b", bytes);
    EXPECT_EQ(ruling.action, Action::drop);
    EXPECT_FALSE(ruling.answer);
  }
  EXPECT_EQ(counters.totals().strangers, 5u);
  EXPECT_EQ(counters.totals().protocol_errors, 0u);
}

TEST_F(PeerTableTest, WhoLeavesWithItsTokenIsForgottenAndNotAnswered) {
  Peer* const a = hello("a", 1).peer;
  const auto ruling = receive("a", control(ControlKind::bye, 1));
  EXPECT_EQ(ruling.action, Action::leave);
  EXPECT_EQ(ruling.gone.get(), a);
  EXPECT_FALSE(ruling.answer);
  EXPECT_EQ(receive("a", frame("text")).action, Action::drop);
  EXPECT_EQ(counters.totals().strangers, 1u);
}

TEST_F(PeerTableTest, AGuessThrowsNobodyOut) {
  hello("a", 1);
  EXPECT_EQ(receive("a", control(ControlKind::bye, 2)).action, Action::drop);
  EXPECT_EQ(counters.totals().protocol_errors, 1u);
  hello("a", 3);  // replaces the token
  EXPECT_EQ(receive("a", control(ControlKind::bye, 1)).action, Action::drop);
  EXPECT_EQ(receive("a", frame("text")).action, Action::message);
  EXPECT_EQ(receive("a", control(ControlKind::bye, 3)).action, Action::leave);
}

TEST_F(PeerTableTest, WhatIsNotOneMessageIsAProtocolErrorAndItsSenderStays) {
  hello("a", 1);
  const std::string whole = frame("text");
  const std::vector<std::string> broken{whole + "x",
                                        whole.substr(0, whole.size() - 1),
                                        std::string{},
                                        std::string(4, '\0'),
                                        control(ControlKind::welcome, 1),
                                        control(ControlKind::full, 1),
                                        control(ControlKind::hello, 1) + "x"};
  for (const std::string& bytes : broken) EXPECT_EQ(receive("a", bytes).action, Action::drop);
  EXPECT_EQ(counters.totals().protocol_errors, broken.size());
  EXPECT_EQ(receive("a", whole).action, Action::message);
}

TEST_F(PeerTableTest, BeyondItsRoomNewOnesAreRefusedAndTheKnownStay) {
  join("a", 1);
  join("b", 2);
  const auto refused = hello("c", 3);
  EXPECT_EQ(refused.action, Action::answer);
  EXPECT_EQ(answer(refused), control(ControlKind::full, 3));
  EXPECT_EQ(counters.totals().peers_refused, 1u);
  EXPECT_EQ(receive("c", frame("text")).action, Action::drop);
  EXPECT_EQ(hello("a", 1).action, Action::answer);
  EXPECT_EQ(receive("b", frame("text")).action, Action::message);
}

TEST_F(PeerTableTest, APlaceIsFreeWhenThePeerIsDestroyedAndNotBefore) {
  join("a", 1);
  join("b", 2);
  auto gone = receive("b", control(ControlKind::bye, 2)).gone;
  EXPECT_EQ(answer(hello("c", 3)), control(ControlKind::full, 3));
  gone.reset();
  EXPECT_EQ(answer(hello("c", 3)), control(ControlKind::welcome, 3));
  EXPECT_THAT(gave_way, ElementsAre());
}

TEST_F(PeerTableTest, WhoHasOnlyGreetedGivesWayTheLongestSilentFirst) {
  hello("a", 1);
  hello("b", 2);
  hello("a", 3);
  EXPECT_EQ(answer(hello("c", 4)), control(ControlKind::welcome, 4));
  EXPECT_THAT(gave_way, ElementsAre(std::pair{"b", 2}));
  EXPECT_EQ(receive("b", frame("text")).action, Action::drop);
  EXPECT_EQ(counters.totals().peers_expired, 1u);
  EXPECT_EQ(receive("a", frame("text")).action, Action::message);
  EXPECT_EQ(answer(hello("d", 5)), control(ControlKind::welcome, 5));
  EXPECT_THAT(gave_way, ElementsAre(std::pair{"b", 2}, std::pair{"c", 4}));
  receive("d", frame("text"));
  EXPECT_EQ(answer(hello("e", 6)), control(ControlKind::full, 6));
  EXPECT_EQ(table.size(), 2u);
}

TEST_F(PeerTableTest, GarbageIsNoMessageThatEarnsAPlace) {
  hello("a", 1);
  receive("a", "garbage");
  join("b", 2);
  EXPECT_EQ(hello("c", 3).action, Action::join);
  EXPECT_THAT(gave_way, ElementsAre(std::pair{"a", 1}));
}

TEST(PeerRoom, WhatIsHeldIsBoundedForAllTogetherAndGivenBack) {
  PeerRoom room{2, 100};
  auto first = room.take();
  EXPECT_TRUE(first.hold(60));
  {
    auto second = room.take();
    EXPECT_FALSE(second.hold(41));
    EXPECT_TRUE(second.hold(40));
    EXPECT_FALSE(first.hold(1));
    second.release(10);
    EXPECT_TRUE(first.hold(10));
    EXPECT_FALSE(room.take());
  }
  EXPECT_TRUE(first.hold(30));
  EXPECT_FALSE(first.hold(1));
}

TEST_F(PeerTableTest, SilenceExpiresAndAnythingHeardPutsItOff) {
  hello("a", 1);
  hello("b", 2);
  now += seconds{20};
  receive("a", frame("text"));
  now += seconds{9};
  EXPECT_THAT(expire(), ElementsAre());
  now += seconds{1};
  EXPECT_EQ(table.next_expiry(now), now);
  EXPECT_THAT(expire(), ElementsAre("b"));
  EXPECT_EQ(table.next_expiry(now), now + seconds{20});
  now += seconds{19};
  receive("a", "garbage");
  now += seconds{29};
  EXPECT_THAT(expire(), ElementsAre());
  now += seconds{1};
  EXPECT_THAT(expire(), ElementsAre("a"));
  EXPECT_EQ(counters.totals().peers_expired, 2u);
  EXPECT_EQ(receive("a", frame("text")).action, Action::drop);
}

TEST_F(PeerTableTest, ClearGivesBackEverybodyWithTheirTokens) {
  hello("a", 1);
  hello("b", 2);
  hello("a", 3);
  std::map<std::string, std::uint64_t> gone;
  table.clear([&](const std::string& key, std::uint64_t token, std::unique_ptr<Peer>) { gone[key] = token; });
  EXPECT_EQ(gone, (std::map<std::string, std::uint64_t>{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(counters.totals().peers_expired, 0u);
}

/// The rules once more, as plainly as can be: which peers are known, with which token, heard of when.
struct Model {
  struct Known {
    std::uint64_t token;
    Table::Clock::time_point heard;
    bool has_spoken = false;
    int round = 0;  // in which it was heard last
  };
  /// The peer that gives way.
  auto idlest() {
    auto found = known.end();
    for (auto peer = known.begin(); peer != known.end(); ++peer)
      if (!peer->second.has_spoken && (found == known.end() || peer->second.round < found->second.round)) found = peer;
    return found;
  }
  std::map<std::string, Known> known;
  Totals totals;
};

PROPERTY(PeerTableProperties, ItDoesWhatThePlainestModelDoes) {
  constexpr std::size_t most = 3;
  ServerOptions options;
  options.workload = Workload::echo;
  options.peer_timeout = seconds{5};
  Counters counters;
  PeerRoom room{most};
  Table table{options, room, counters,
              [](const std::string&, PeerRoom::Place place) { return std::make_unique<Peer>(std::move(place)); }};
  Model model;
  Table::Clock::time_point now{};

  enum Act { say_hello, say_bye, say_something, say_garbage, let_time_pass };
  int round = 0;
  for (const int act : draw::several<int>(say_hello, let_time_pass + 1)) {
    const std::string from(1, draw::between('a', 'g'));
    const auto token = draw::between<std::uint64_t>(0, 3);
    const auto known = model.known.find(from);
    const bool is_known = known != model.known.end();
    ++round;
    std::set<std::string> gave_way;
    const auto gone = [&](const std::string& key, std::uint64_t, std::unique_ptr<Peer>) { gave_way.insert(key); };
    if (act == let_time_pass) {
      now += seconds{draw::between(0, 4)};
      std::set<std::string> expired;
      table.expire(now, [&](const std::string& key, std::uint64_t its_token, std::unique_ptr<Peer>) {
        RC_ASSERT(model.known.at(key).token == its_token);
        expired.insert(key);
      });
      for (const std::string& key : expired) RC_ASSERT(model.known.at(key).heard + seconds{5} <= now);
      model.totals.peers_expired +=
          std::erase_if(model.known, [&](const auto& entry) { return entry.second.heard + seconds{5} <= now; });
    } else if (act == say_hello) {
      const auto ruling = table.receive(from, control(ControlKind::hello, token), now, gone);
      const auto idlest = is_known || model.known.size() < most ? model.known.end() : model.idlest();
      RC_ASSERT(gave_way == (idlest == model.known.end() ? std::set<std::string>{} : std::set{idlest->first}));
      if (idlest != model.known.end()) model.known.erase(idlest);
      model.totals.peers_expired += gave_way.size();
      const bool welcome = is_known || model.known.size() < most;
      const auto expected = encode_control({welcome ? ControlKind::welcome : ControlKind::full, token});
      RC_ASSERT(ruling.answer == expected);
      RC_ASSERT((ruling.action == Action::join) == (welcome && !is_known));
      if (welcome) model.known[from] = {token, now, is_known && model.known[from].has_spoken, round};
      model.totals.connections += welcome && !is_known ? 1 : 0;
      model.totals.peers_refused += welcome ? 0 : 1;
    } else {
      const std::string bytes = act == say_bye         ? control(ControlKind::bye, token)
                                : act == say_something ? "text"
                                                       : std::string(5, '\0');
      const auto ruling = table.receive(from, bytes, now, gone);
      const bool leaves = is_known && act == say_bye && known->second.token == token;
      RC_ASSERT((ruling.action == Action::leave) == leaves);
      RC_ASSERT((ruling.action == Action::message) == (is_known && act == say_something));
      RC_ASSERT(!ruling.answer);
      model.totals.strangers += is_known ? 0 : 1;
      model.totals.protocol_errors += is_known && act != say_something && !leaves ? 1 : 0;
      RC_ASSERT(gave_way.empty());
      if (is_known) known->second = {known->second.token, now, known->second.has_spoken || act == say_something, round};
      if (leaves) model.known.erase(known);
    }
    RC_ASSERT(table.size() == model.known.size());
  }
  const Totals totals = counters.totals();
  RC_ASSERT(totals.connections == model.totals.connections);
  RC_ASSERT(totals.peers_refused == model.totals.peers_refused);
  RC_ASSERT(totals.peers_expired == model.totals.peers_expired);
  RC_ASSERT(totals.strangers == model.totals.strangers);
  RC_ASSERT(totals.protocol_errors == model.totals.protocol_errors);
}

}  // namespace
}  // namespace netdyno
