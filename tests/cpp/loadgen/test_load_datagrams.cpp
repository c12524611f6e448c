// Whole runs of the generator over UDP, against a server and a network that lose, repeat, disorder, damage and delay
// exactly what the test sets.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "lib/measure/stamp.hpp"
#include "tests/cpp/loadgen/fake_datagram_server.hpp"
#include "tests/cpp/loadgen/load_run.hpp"

namespace netdyno::load {
namespace {

using Server = FakeDatagramServer;
using Answers = std::vector<Server::Answer>;
using std::chrono::milliseconds;

struct Result {
  LoadPlan plan;
  Measurement measured;
  const Figures& figures() const { return measured.figures; }
  const MessageCounts& messages() const { return measured.figures.messages; }
  std::string detail(const std::string& name) const { return find(audit(plan, measured), name).detail; }
  bool believed(const std::string& name) const { return passed(audit(plan, measured), name); }
};

/// A hundred messages to a server that behaves like this. What is not lost comes long before the timeout, also where
/// this process has to wait for a core.
Result hundred(const Server::Behaviour& behaviour) {
  const Server server{behaviour};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.timeout = 2 * one_second;
  return {plan, measure(plan)};
}

/// The same, where every tenth message is answered otherwise.
Result hundred_of_which_ten(const std::function<Answers(std::string)>& otherwise) {
  return hundred([&](int, int message, const std::string& text) {
    return every_tenth(message) ? otherwise(text) : Answers{{text}};
  });
}

TEST(LoadDatagrams, FindsNothingWrongWithAServerThatEchoes) {
  Server server{Server::echo};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.connections = 4;
  plan.timeout = 20 * one_second;  // what has come is not waited for
  const Result result{plan, measure(plan)};
  const Figures& f = result.figures();
  EXPECT_EQ(f.connections.established, 4U);
  EXPECT_EQ(f.connect.count(), 4U);
  EXPECT_EQ(f.messages.sent, 100U);
  EXPECT_EQ(f.messages.expected, 100U);
  EXPECT_EQ(f.messages.received, 100U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.messages.duplicated + f.messages.reordered + f.messages.corrupt + f.messages.late, 0U);
  EXPECT_EQ(f.bytes.sent, 3100U);
  EXPECT_EQ(f.bytes.received, 3100U);
  EXPECT_EQ(f.bytes.expected, 3100U);
  EXPECT_EQ(f.socket_drops, 0U);
  for (const char* name : {"verification", "bytes", "connections"})
    EXPECT_TRUE(result.believed(name)) << result.detail(name);
  server.stop();
  ASSERT_EQ(server.clients().size(), 4U);
  for (const auto& client : server.clients()) {
    EXPECT_GE(client.hellos, 1);
    EXPECT_EQ(client.byes, 1);
    EXPECT_EQ(client.messages, 25);
  }
}

TEST(LoadDatagrams, StatesEveryLostMessageAndBelievesTheRest) {
  const Result result = hundred_of_which_ten([](const std::string&) { return Answers{}; });
  EXPECT_EQ(result.messages().lost(), 10);
  EXPECT_EQ(result.messages().received, 90U);
  EXPECT_EQ(result.figures().errors.timeout, 10U);
  EXPECT_EQ(result.figures().response.count(), 90U);
  EXPECT_TRUE(result.believed("verification"));
  EXPECT_NE(result.detail("verification").find("lost 10 (10%)"), std::string::npos) << result.detail("verification");
  EXPECT_TRUE(result.believed("bytes")) << result.detail("bytes");
  EXPECT_NE(result.detail("achieved_rate").find("loss: 10 of the window's messages (10%)"), std::string::npos)
      << result.detail("achieved_rate");
}

TEST(LoadDatagrams, StatesEveryDuplicate) {
  const Result result = hundred_of_which_ten([](const std::string& text) { return Answers{{text}, {text}}; });
  EXPECT_EQ(result.messages().duplicated, 10U);
  EXPECT_EQ(result.messages().received, 110U);
  EXPECT_EQ(result.messages().lost(), 0);
  EXPECT_EQ(result.figures().response.count(), 100U);
  EXPECT_TRUE(result.believed("verification"));
  EXPECT_NE(result.detail("verification").find("duplicated 10 (9.09%)"), std::string::npos);
  EXPECT_TRUE(result.believed("bytes")) << result.detail("bytes");
}

TEST(LoadDatagrams, StatesEveryMessageThatWasOvertaken) {
  std::string held;
  const Result result = hundred([&held](int, int message, const std::string& text) -> Answers {
    if (every_tenth(message)) return held = text, Answers{};
    if (held.empty()) return {{text}};
    return {{text}, {std::exchange(held, "")}};
  });
  EXPECT_EQ(result.messages().reordered, 10U);
  EXPECT_EQ(result.messages().lost(), 0);
  EXPECT_EQ(result.figures().response.count(), 100U);
  EXPECT_TRUE(result.believed("verification"));
  EXPECT_NE(result.detail("verification").find("reordered 10 (10%)"), std::string::npos);
}

struct Damage {
  const char* name;
  std::function<std::string(std::string)> inflict;
};
class LoadDatagramsDamaged : public testing::TestWithParam<Damage> {};

/// Each counts once, and the messages around it are whole.
TEST_P(LoadDatagramsDamaged, IsCountedAndNotBelieved) {
  const Result result =
      hundred_of_which_ten([](std::string text) { return Answers{{GetParam().inflict(std::move(text))}}; });
  EXPECT_EQ(result.messages().corrupt, 10U);
  EXPECT_EQ(result.messages().received, 90U);
  EXPECT_EQ(result.messages().lost(), 10);
  EXPECT_EQ(result.messages().duplicated, 0U);
  EXPECT_FALSE(result.believed("verification"));
  EXPECT_NE(result.detail("verification").find("corrupt 10"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    By, LoadDatagramsDamaged,
    testing::Values(Damage{"AFlippedBit", [](std::string text) { return text[7] ^= 1, text; }},
                    Damage{"Truncation", [](std::string text) { return text.substr(0, 12); }},
                    Damage{"TheLossOfAllItsBytes", [](const std::string&) { return std::string{}; }},
                    Damage{"AByteMore", [](std::string text) { return text + "x"; }},
                    Damage{"AThousandBytesMore", [](std::string text) { return text + std::string(1000, 'x'); }},
                    Damage{"AnotherMessageBehindIt", [](std::string text) { return text + text; }},
                    Damage{"TheStampOfAnotherClient",
                           [](const std::string& text) {
                             return stamped_line({9, 5}, text.size());
                           }},
                    Damage{"AMessageThatWasNeverSent",
                           [](const std::string& text) {
                             return stamped_line({0, 900}, text.size());
                           }},
                    Damage{"ABrokenControlMessage", [](const std::string&) { return std::string(16, '\0'); }}),
    [](const auto& test) { return std::string{test.param.name}; });

TEST(LoadDatagrams, CountsAnswersAfterTheTimeoutAsLate) {
  const Server server{[](int, int message, const std::string& text) {
    return Answers{{text, 0, milliseconds{message < 10 ? 1500 : 0}}};
  }};
  LoadPlan plan = one_by_one(server.url(), 3000);
  plan.rate_hz = 200;
  plan.timeout = one_second;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.messages().late, 10U);
  EXPECT_EQ(result.messages().lost(), 0);
  EXPECT_EQ(result.figures().errors.timeout, 10U);
  EXPECT_EQ(result.figures().response.count(), 600U);
  EXPECT_GE(result.figures().response.max(), 1500 * ms);
  EXPECT_TRUE(result.believed("little")) << result.detail("little");
}

/// No message that is overdue at the end of the window is waited for; one that may still come in time is.
TEST(LoadDatagrams, DoesNotWaitForWhatIsOverdue) {
  const Server server{[](int, int message, const std::string& text) {
    return message == 0 ? Answers{} : Answers{{text, 0, milliseconds{message == 249 ? 200 : 0}}};
  }};
  LoadPlan plan = one_by_one(server.url(), 2500);
  plan.rate_hz = 100;
  plan.timeout = 2 * one_second;
  const Nanos began = now_ns();
  const Result result{plan, measure(plan)};
  EXPECT_LT(now_ns() - began, plan.duration + plan.timeout);
  EXPECT_EQ(result.messages().lost(), 1);
  EXPECT_EQ(result.figures().errors.timeout, 1U);
}

TEST(LoadDatagrams, AClosedLoopGoesOnWithoutTheLostMessage) {
  const Server server{
      [](int, int message, const std::string& text) { return message == 3 ? Answers{} : Answers{{text}}; }};
  LoadPlan plan = one_by_one(server.url(), 2000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.connections = 3;
  plan.timeout = 700 * ms;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.messages().lost(), 3);
  EXPECT_EQ(result.figures().errors.timeout, 3U);
  EXPECT_GT(result.messages().received, 30U);
  EXPECT_TRUE(result.believed("little")) << result.detail("little");
  EXPECT_NE(result.detail("little").find("given up"), std::string::npos) << result.detail("little");
}

/// In a closed loop whose window is shorter than its timeout, what is lost holds its place to the end: nearly all of N
/// is lost messages, and the law holds all the same.
TEST(LoadDatagrams, LittlesLawHoldsWhereNearlyEverythingIsStuck) {
  const Server server{[](int client, int message, const std::string& text) {
    return client > 0 && message > 20 * client ? Answers{} : Answers{{text}};
  }};
  LoadPlan plan = one_by_one(server.url(), 700);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.connections = 10;
  plan.timeout = one_second;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.messages().lost(), 9);
  EXPECT_TRUE(result.believed("little")) << result.detail("little");
}

TEST(LoadDatagrams, LittlesLawHoldsInAnOpenLoopWithLoss) {
  const Server server{[](int, int message, const std::string& text) {
    return message % 3 == 0 ? Answers{} : Answers{{text, 0, milliseconds{5}}};
  }};
  LoadPlan plan = one_by_one(server.url(), 1500);
  plan.timeout = 700 * ms;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.messages().lost(), 500);
  EXPECT_TRUE(result.believed("little")) << result.detail("little");
}

TEST(LoadDatagrams, IsEstablishedThoughHellosAndWelcomesAreLost) {
  Server server{Server::echo,
                [](int, int hello) { return hello < 2 ? std::nullopt : std::optional{ControlKind::welcome}; }};
  LoadPlan plan = one_by_one(server.url(), 10);
  plan.connections = 3;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.figures().connections.established, 3U);
  EXPECT_GE(result.figures().connect.find_percentile(0), 600 * ms);  // 200 ms and 400 ms of patience
  server.stop();
  for (const auto& client : server.clients()) EXPECT_EQ(client.hellos, 3);
}

TEST(LoadDatagrams, IsRefusedWhereThereIsNoRoom) {
  const Server server{Server::echo,
                      [](int client, int) { return client % 2 == 0 ? ControlKind::welcome : ControlKind::full; }};
  LoadPlan plan = one_by_one(server.url(), 10);
  plan.connections = 4;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.figures().connections.established, 2U);
  EXPECT_EQ(result.figures().connections.refused, 2U);
  EXPECT_FALSE(result.believed("connections"));
}

TEST(LoadDatagrams, IsRefusedWhereNobodyListens) {
  Url url;
  {
    Server server{Server::echo};
    url = server.url();
  }
  LoadPlan plan = one_by_one(url, 10);
  plan.connections = 3;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.connections.refused, 3U);
  EXPECT_EQ(f.connections.attempted(), 3U);
}

TEST(LoadDatagrams, TimesOutWhereNobodyAnswersAndTakesItsLeave) {
  Server server{Server::echo, [](int, int) { return std::nullopt; }};
  LoadPlan plan = one_by_one(server.url(), 10);
  plan.connections = 3;
  plan.connect_timeout = 300 * ms;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.connections.timed_out, 3U);
  EXPECT_EQ(f.connections.attempted(), 3U);
  server.stop();
  for (const auto& client : server.clients()) EXPECT_EQ(client.byes, 1);
}

TEST(LoadDatagrams, SaysThatTheServerTookItsLeave) {
  Server server{[](int client, int message, const std::string& text) {
    Answers answers{{text}};
    if (client == 0 && message == 10) answers.push_back({.bytes = "", .control = ControlKind::bye});
    return answers;
  }};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.connections = 2;
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.figures().errors.closed_by_server, 1U);
  EXPECT_EQ(result.figures().errors.reset, 0U);
  EXPECT_FALSE(result.believed("connections"));
  server.stop();
  EXPECT_EQ(server.clients()[0].byes, 0) << "who is forgotten need not leave";
  EXPECT_EQ(server.clients()[1].byes, 1);
}

TEST(LoadDatagrams, PassesOverALeaveWithAnotherToken) {
  const Server server{[](int, int, const std::string& text) {
    const ControlBytes bye = encode_control({ControlKind::bye, 7});
    return Answers{{{bye.data(), bye.size()}}, {text}};
  }};
  LoadPlan plan = one_by_one(server.url(), 50);
  plan.timeout = 20 * one_second;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.received, 50U);
  EXPECT_EQ(f.errors.closed_by_server, 0U);
  EXPECT_EQ(f.messages.corrupt, 0U);
}

/// Then the kernel of the server answers with ICMP, and udp(7) says ECONNREFUSED.
TEST(LoadDatagrams, SaysThatTheServerIsGone) {
  struct Stop : Quiet {
    explicit Stop(Server& fake) : fake_(fake) {}
    void on_window_start() override {
      fake_.stop();
      fake_.vanish();
    }
    Server& fake_;
  };
  Server server{Server::echo};
  Stop stop{server};
  LoadPlan plan = one_by_one(server.url(), 2000);
  plan.connections = 3;
  plan.timeout = 20 * one_second;
  const Figures f = run_load(plan, stop).figures;
  EXPECT_EQ(f.errors.reset, 3U);
  EXPECT_EQ(f.errors.closed_by_server, 0U);
}

TEST(LoadDatagrams, ConnectsFromTheSourceAddressesInTurn) {
  Server server{Server::echo};
  LoadPlan plan = one_by_one(server.url(), 10);
  plan.connections = 4;
  plan.source_ips = {"127.0.0.2", "127.0.0.3"};
  EXPECT_EQ(measure(plan).figures.connections.established, 4U);
  server.stop();
  std::map<std::uint32_t, int> addresses;
  for (const auto& client : server.clients()) ++addresses[ntohl(client.address.sin_addr.s_addr)];
  EXPECT_EQ(addresses, (std::map<std::uint32_t, int>{{0x7f000002, 2}, {0x7f000003, 2}}));
}

TEST(LoadDatagrams, CarriesTheLongestDatagram) {
  const Server server{Server::echo};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.rate_hz = 100;
  plan.size = max_datagram;
  plan.timeout = 20 * one_second;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.received, 10U);
  EXPECT_EQ(f.messages.corrupt, 0U);
}

/// Many messages in flight on few connections leave and come in batches.
TEST(LoadDatagrams, CountsEveryMessageOfABatch) {
  const Server server{
      [](int, int message, const std::string& text) { return message % 100 == 7 ? Answers{} : Answers{{text}}; }};
  LoadPlan plan = one_by_one(server.url(), 300);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.depth = 100;
  plan.connections = 2;
  plan.timeout = one_second;
  const Result result{plan, measure(plan)};
  EXPECT_GE(result.messages().lost(), 2);  // the first such of each
  EXPECT_EQ(result.messages().sent - static_cast<std::uint64_t>(result.messages().lost()), result.messages().received);
  EXPECT_EQ(result.messages().corrupt + result.messages().duplicated + result.messages().reordered, 0U);
}

class LoadDatagramsChance : public testing::TestWithParam<std::uint32_t> {};

/// Each client has a network of its own, drawn by chance; the expected figures come from what was really sent.
TEST_P(LoadDatagramsChance, AgreesWithAnyNetwork) {
  struct Sent {
    std::vector<std::optional<std::uint64_t>> order;  // a sequence number, or nothing for what was damaged
    std::string held;
  };
  constexpr std::uint32_t clients = 100;
  constexpr int per_client = 20;
  std::mt19937 chance{GetParam()};
  std::vector<Sent> sent(clients);
  const auto note = [](Sent& to, const std::string& text) {
    const auto stamp = read_stamp(std::string_view{text}.substr(0, text.size() - 1));
    to.order.push_back(stamp ? std::optional{stamp->sequence} : std::nullopt);
  };
  Server server{[&](int client, int, const std::string& text) {
    Sent& to = sent[static_cast<std::size_t>(client)];
    Answers answers;
    const auto give = [&](const std::string& bytes) {
      answers.push_back({bytes});
      note(to, bytes);
    };
    const bool released = !to.held.empty();
    switch (chance() % 8) {
      case 0:  // lost
        break;
      case 1:
        give(text);
        give(text);
        break;
      case 2:  // overtaken by the next, if that is not lost
        if (released) give(to.held);
        return to.held = text, answers;
      case 3: {
        std::string broken = text;
        broken[chance() % (broken.size() - 1)] ^= 4;
        give(broken);
        break;
      }
      case 4:
        give(text.substr(0, 3) + "\n");
        break;
      default:
        give(text);
    }
    if (released) give(std::exchange(to.held, ""));
    return answers;
  }};
  LoadPlan plan = one_by_one(server.url(), static_cast<int>(clients) * per_client / 4);
  plan.rate_hz = 4000;
  plan.connections = clients;
  plan.timeout = 4 * one_second;
  const Result result{plan, measure(plan)};
  server.stop();

  MessageCounts model;
  for (const Sent& to : sent) {
    std::set<std::uint64_t> seen;
    for (const auto& sequence : to.order) {
      if (!sequence) {
        ++model.corrupt;
        continue;
      }
      ++model.received;
      const bool latest = seen.empty() || *sequence > *seen.rbegin();
      const bool first = seen.insert(*sequence).second;
      model.duplicated += !first;
      model.reordered += first && !latest;
    }
  }
  const MessageCounts& counted = result.messages();
  EXPECT_EQ(counted.sent, clients * per_client);
  EXPECT_EQ(counted.received, model.received);
  EXPECT_EQ(counted.duplicated, model.duplicated);
  EXPECT_EQ(counted.reordered, model.reordered);
  EXPECT_EQ(counted.corrupt, model.corrupt);
  EXPECT_EQ(counted.lost(), static_cast<std::int64_t>(clients * per_client - (model.received - model.duplicated)));
  EXPECT_EQ(result.figures().errors.timeout, static_cast<std::uint64_t>(counted.lost()) + counted.late);
  EXPECT_TRUE(result.believed("little")) << result.detail("little");
}

// Seeds of their own tests, so that their windows pass side by side.
INSTANTIATE_TEST_SUITE_P(By, LoadDatagramsChance, testing::Values(0U, 1U, 2U));

bool is_probe(const std::string& frame) { return frame.compare(4, 8, "ffffffff") == 0; }

LoadPlan chat_of_four(const Url& url) {
  LoadPlan plan = one_by_one(url, 50);
  plan.timeout = 2 * one_second;
  plan.workload = Workload::chat;
  plan.audience = Audience::all;
  plan.connections = 4;
  return plan;
}

TEST(LoadDatagrams, CountsWhatEachReceiverOfAChatMissesAndTimesOnesOwn) {
  int broadcasts = 0;
  const Server server{[&broadcasts](int, int, const std::string& frame) -> Answers {
    const bool whispered = !is_probe(frame) && broadcasts++ % 10 == 5;
    return {{frame, whispered ? 2U : 4U}};
  }};
  const LoadPlan plan = chat_of_four(server.url());
  const Result result{plan, measure(plan)};
  EXPECT_EQ(result.messages().expected, 200U);
  EXPECT_EQ(result.messages().lost(), 10);
  EXPECT_EQ(result.messages().duplicated, 0U);
  // The messages 5, 15, ... are of the clients 1, 3, 1, 3, 1 (each in turn): client 3 does not hear its own.
  EXPECT_EQ(result.figures().response.count(), 48U);
  EXPECT_EQ(result.figures().errors.timeout, 2U);
  EXPECT_TRUE(result.believed("connections"));
  EXPECT_TRUE(result.believed("bytes")) << result.detail("bytes");
}

TEST(LoadDatagrams, StartsAChatThoughItsFirstProbesAreLost) {
  int probes = 0;
  const Server server{[&probes](int, int, const std::string& frame) -> Answers {
    if (is_probe(frame) && probes++ < 3) return {};
    return {{frame, 4}};
  }};
  LoadPlan plan = chat_of_four(server.url());
  plan.timeout = 20 * one_second;
  const Result result{plan, measure(plan)};
  EXPECT_TRUE(result.believed("connections")) << result.detail("connections");
  EXPECT_EQ(result.messages().lost(), 0);
  EXPECT_EQ(result.messages().received, 200U);
}

}  // namespace
}  // namespace netdyno::load
