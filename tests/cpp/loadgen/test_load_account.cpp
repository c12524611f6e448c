// The outcome of each message, connect and connection: of whatever runs, the counts hold together (measure() asks), and
// what was sent and not answered goes out again only where that may be.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "loadgen/report/display.hpp"
#include "tests/cpp/loadgen/fake_server.hpp"
#include "tests/cpp/loadgen/load_run.hpp"

namespace netdyno::load {
namespace {

using Then = FakeServer::Then;

/// How a server answers the n-th message of a connection.
const std::map<std::string, FakeServer::Behaviour> behaviours{
    {"answers", FakeServer::echo},
    {"stalls",
     [](int, int message, const std::string& line) -> FakeServer::Answer {
       if (message % 8 == 5) std::this_thread::sleep_for(std::chrono::milliseconds{120});
       return {line};
     }},
    {"forgets",
     [](int, int message, const std::string& line) -> FakeServer::Answer {
       return {message % 5 == 3 ? std::string{} : line};
     }},
    {"closes",
     [](int, int message, const std::string& line) -> FakeServer::Answer {
       return {message % 3 == 2 ? std::string{} : line, message % 3 == 2 ? Then::close : Then::go_on};
     }},
    {"resets",
     [](int, int message, const std::string& line) -> FakeServer::Answer {
       return {message % 3 == 2 ? std::string{} : line, message % 3 == 2 ? Then::reset : Then::go_on};
     }},
    {"cuts",
     [](int, int message, const std::string& line) -> FakeServer::Answer {
       return {message % 4 == 3 ? line.substr(0, 2) : line, message % 4 == 3 ? Then::close : Then::go_on};
     }},
    {"answers twice", [](int, int, const std::string& line) -> FakeServer::Answer { return {line + line}; }},
    {"never answers", [](int, int, const std::string&) -> FakeServer::Answer { return {}; }},
    {"never stands",
     [](int, int, const std::string&) -> FakeServer::Answer {
       return {"", Then::close};
     }},
};

using AccountCase = std::tuple<std::string, bool, bool, bool, int>;

std::string account_name(const testing::TestParamInfo<AccountCase>& info) {
  const auto& [behaviour, is_open, is_counted, is_foreign, depth] = info.param;
  std::string name = behaviour + (is_open ? "_open" : "_closed") + (is_counted ? "_counted" : "_timed") +
                     (is_foreign ? "_foreign_" : "_own_") + std::to_string(depth);
  std::ranges::replace(name, ' ', '_');
  return name;
}

class Account : public testing::TestWithParam<AccountCase> {};

TEST_P(Account, HoldsTogether) {
  const auto& [behaviour, is_open, is_counted, is_foreign, depth] = GetParam();
  const FakeServer server{behaviours.at(behaviour)};
  LoadPlan plan = one_by_one(server.url(), 60);
  plan.timeout = 50 * ms;
  plan.connections = 2;
  if (!is_open) {
    plan.arrivals = Arrivals::closed;
    plan.rate_hz.reset();
  }
  if (is_counted) {
    plan.count = 30;
    plan.duration = 5 * one_second;
  }
  plan.depth = static_cast<std::uint32_t>(depth);
  if (is_foreign) {
    plan.exchange.emplace().send = "message {sequence}\n";
    plan.flight_is_limited = true;
    plan.repeatable = depth == 2;
  }
  const Measurement measured = measure(plan);
  EXPECT_GT(measured.figures.messages.due, 0U);
}

INSTANTIATE_TEST_SUITE_P(Of, Account,
                         testing::Combine(testing::Values("answers", "stalls", "forgets", "closes", "resets", "cuts",
                                                          "answers twice", "never answers", "never stands"),
                                          testing::Bool(), testing::Bool(), testing::Bool(), testing::Values(1, 2, 4)),
                         account_name);

/// Two of three are answered, and the third ends its connection after it has come: 30 messages, 1 in flight.
Measurement asked_for_thirty(bool repeatable, Then then, int& served) {
  const FakeServer server{[&](int, int message, const std::string& line) -> FakeServer::Answer {
    ++served;
    return message % 3 == 2 ? FakeServer::Answer{"", then} : FakeServer::Answer{line};
  }};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.count = 30;
  plan.exchange.emplace().send = "order {sequence}\n";
  plan.flight_is_limited = true;
  plan.repeatable = repeatable;
  return measure(plan);
}

TEST(SentAgain, IsNothingThatMayHaveBeenCarriedOut) {
  for (const Then then : {Then::close, Then::reset}) {
    int served = 0;
    const Figures f = asked_for_thirty(false, then, served).figures;
    EXPECT_EQ(served, 30) << "each once";
    EXPECT_EQ(f.messages.resent, 0U);
    EXPECT_EQ(f.messages.received, 20U);
    EXPECT_EQ(f.messages.lost(), 10);
    EXPECT_EQ(then == Then::close ? f.errors.closed_by_server : f.errors.reset, 10U);
    ASSERT_EQ(f.faults.kinds.size(), 1U);
    EXPECT_NE(f.faults.kinds[0].what.find("with a request in flight, which is not resent"), std::string::npos);
    EXPECT_EQ(f.faults.kinds[0].count, 10U);
  }
}

TEST(SentAgain, IsWhatTheUserSaysMayBe) {
  int served = 0;
  const Measurement measured = asked_for_thirty(true, Then::close, served);
  const Figures& f = measured.figures;
  EXPECT_EQ(served, 44);
  EXPECT_EQ(f.messages.resent, 14U);
  EXPECT_EQ(f.messages.received, 30U);
  LoadPlan plan = one_by_one({"tcp", "127.0.0.1", 1, ""}, 30);
  plan.exchange.emplace();
  const Audit verification = find(audit(plan, measured), "verification");
  EXPECT_TRUE(verification.passed);
  EXPECT_TRUE(is_note(verification)) << "but not in silence: " << verification.detail;
}

TEST(SentAgain, AreRequestsWhoseMethodIsIdempotent) {
  LoadPlan plan;
  EXPECT_FALSE(plan.may_be_sent_again());
  plan.http.emplace();
  for (const char* method : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}) {
    plan.http->method = method;
    EXPECT_TRUE(plan.may_be_sent_again()) << method;
  }
  for (const char* method : {"POST", "PATCH", "CONNECT", "ORDER"}) {
    plan.http->method = method;
    EXPECT_FALSE(plan.may_be_sent_again()) << method;
  }
}

/// The figures of a load refer to the time that it took.
TEST(Duration, IsThatOfTheLoadWhereTheLastConnectionEndsIt) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return {line, message == 9 ? Then::close : Then::go_on};
  }};
  for (const std::uint32_t threads : {1U, 2U}) {
    LoadPlan plan = one_by_one(server.url(), 20'000);
    plan.connections = plan.threads = threads;
    const Measurement measured = measure(plan);
    EXPECT_EQ(measured.figures.messages.received, 10 * threads);
    EXPECT_EQ(measured.duration, plan.duration);
    ASSERT_TRUE(measured.load_ended);
    EXPECT_LT(*measured.load_ended, plan.duration / 2);
    const std::string text = summary(plan, measured, {});
    EXPECT_NE(text.find("s, when the last connection had ended, of the 20 s requested"), std::string::npos) << text;

    plan.count = 5000;
    plan.duration = 3600 * one_second;
    EXPECT_LT(measure(plan).duration, 20 * one_second) << "nobody asked for a time";
  }
}

TEST(Duration, IsNoneWhereThereWasNoLoad) {
  LoadPlan plan;
  {
    const UniqueFd listener = listen_tcp({}, true);
    plan.url = local_endpoint(listener.get());
  }
  plan.count = 10;
  plan.duration = 3600 * one_second;
  const Measurement refused = measure(plan);
  EXPECT_EQ(refused.duration, 0);
  EXPECT_EQ(refused.figures.messages.due, 0U);
  plan.duration = refused.duration;
  const std::string text = summary(plan, refused, audit(plan, refused));
  EXPECT_NE(text.find("- messages/s: 0 answered in 0 s; of 0 due"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

}  // namespace
}  // namespace netdyno::load
