#include <gtest/gtest.h>

#include <set>
#include <string>

#include "loadgen/transport/greeting.hpp"
#include "tests/cpp/loadgen/load_run.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno::load {
namespace {

using Answer = Greetings::Answer;

std::string_view text(const ControlBytes& bytes) { return {bytes.data(), bytes.size()}; }

/// The server's answer to a control message: other letters, the same token.
ControlBytes answer(ControlKind kind, const ControlBytes& hello) {
  return encode_control({kind, decode_control(text(hello))->token});
}

struct OneClient {
  Greetings greetings{1, 42};
  ControlBytes hello = greetings.begin(0, 0);

  Answer hear(ControlKind kind, Nanos now = 0) { return greetings.receive(0, text(answer(kind, hello)), now); }
};

TEST(Greetings, BeginWithAHelloOfTheirOwnToken) {
  Greetings greetings{1000, fresh_secret()};
  std::set<std::uint64_t> tokens;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto hello = decode_control(text(greetings.begin(i, 0)));
    EXPECT_EQ(hello->kind, ControlKind::hello);
    tokens.insert(hello->token);
  }
  EXPECT_EQ(tokens.size(), 1000U);
  EXPECT_NE(fresh_secret(), fresh_secret());
}

TEST(Greetings, RepeatAHelloWithTwiceThePatience) {
  OneClient client;
  for (const Nanos due : {200 * ms, 600 * ms, 1400 * ms, 3000 * ms}) {
    EXPECT_EQ(client.greetings.due(), due);
    EXPECT_FALSE(client.greetings.take_due(due - 1));
    const auto again = client.greetings.take_due(due);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->connection, 0U);
    EXPECT_EQ(again->bytes, client.hello);
    EXPECT_FALSE(client.greetings.take_due(due));
  }
}

TEST(Greetings, AreOverWithAWelcome) {
  OneClient client;
  EXPECT_FALSE(client.greetings.known(0));
  EXPECT_EQ(client.hear(ControlKind::welcome), Answer::welcome);
  EXPECT_TRUE(client.greetings.known(0));
  EXPECT_EQ(client.hear(ControlKind::welcome), Answer::nothing) << "the answer to a repeated HELO";
  EXPECT_FALSE(client.greetings.take_due(2 * one_second));
}

TEST(Greetings, TellThatThereIsNoRoomAndThatTheServerForgets) {
  OneClient client;
  EXPECT_EQ(client.hear(ControlKind::full), Answer::full);
  EXPECT_EQ(client.hear(ControlKind::welcome), Answer::welcome);
  EXPECT_EQ(client.hear(ControlKind::bye), Answer::bye);
}

TEST(Greetings, PassOverATokenThatIsNotTheirs) {
  OneClient client;
  for (const ControlKind kind : {ControlKind::welcome, ControlKind::full, ControlKind::bye})
    EXPECT_EQ(client.greetings.receive(0, text(encode_control({kind, 7})), 0), Answer::nothing);
  EXPECT_FALSE(client.greetings.known(0));
}

TEST(Greetings, TakeNothingElseForAnAnswer) {
  OneClient client;
  EXPECT_EQ(client.hear(ControlKind::hello), Answer::nonsense);
  const ControlBytes welcome = answer(ControlKind::welcome, client.hello);
  EXPECT_EQ(client.greetings.receive(0, text(welcome).substr(0, 15), 0), Answer::nonsense);
  EXPECT_EQ(client.greetings.receive(0, std::string{text(welcome)} + "x", 0), Answer::nonsense);
}

TEST(Greetings, EndWithOneByeOfTheSameToken) {
  OneClient client;
  client.hear(ControlKind::welcome);
  const auto bye = client.greetings.end(0);
  ASSERT_TRUE(bye);
  EXPECT_EQ(*bye, answer(ControlKind::bye, client.hello));
  EXPECT_FALSE(client.greetings.end(0));
  EXPECT_EQ(client.hear(ControlKind::welcome), Answer::nothing);
  EXPECT_FALSE(client.greetings.take_due(one_second * 1000));
  EXPECT_EQ(client.greetings.due(), never);
  EXPECT_FALSE(Greetings(1, 1).end(0)) << "it never began";
}

TEST(Greetings, OfTenThousandAreNotAllRenewedAtOnce) {
  constexpr std::uint32_t many = 10'000;
  Greetings greetings{many, 42};
  for (std::uint32_t i = 0; i < many; ++i)
    greetings.receive(i, text(answer(ControlKind::welcome, greetings.begin(i, 0))), 0);
  std::uint32_t most = 0;
  for (Nanos now = 0; now < 20 * one_second; now += 10 * ms) {
    std::uint32_t together = 0;
    while (greetings.take_due(now)) ++together;
    most = std::max(most, together);
  }
  EXPECT_LT(most, many / 50);
}

/// Whatever it sends and when, no known client is silent for longer than is promised, and one that sends often enough
/// sends no HELO beside that.
PROPERTY(Greetings, KeepNobodySilentForLong) {
  OneClient client;
  client.hear(ControlKind::welcome);
  const auto gaps = draw::several<Nanos>(1, 12'000);
  Nanos now = 0;
  Nanos last_sound = 0;
  for (const Nanos gap : gaps) {
    const Nanos next = now + gap * ms;
    for (Nanos due = client.greetings.due(); due <= next; due = client.greetings.due()) {
      now = due;
      if (!client.greetings.take_due(now)) continue;
      RC_ASSERT(now - last_sound <= Greetings::longest_silence);
      RC_ASSERT(now - last_sound > 0);
      last_sound = now;
    }
    RC_ASSERT(next - last_sound <= Greetings::longest_silence);
    now = last_sound = next;
    client.greetings.spoke(0);
  }
}

TEST(Greetings, SayNothingBesideALoad) {
  OneClient client;
  client.hear(ControlKind::welcome);
  for (Nanos now = 0; now < 100 * one_second; now += one_second) {
    client.greetings.spoke(0);
    EXPECT_FALSE(client.greetings.take_due(now));
  }
}

}  // namespace
}  // namespace netdyno::load
