#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "loadgen/report/audits.hpp"
#include "tests/cpp/loadgen/load_run.hpp"

namespace netdyno::load {
namespace {

constexpr std::int64_t service = 100'000;  // ns

/// 1000 messages a second on 10 connections for 10 s, each answered after 100 us: nothing to complain about.
struct Trial {
  LoadPlan plan;
  Measurement result;

  Trial() {
    plan.url.transport = "tcp";
    plan.connections = 10;
    plan.arrivals = Arrivals::constant;
    plan.rate_hz = 1000;
    Figures& f = result.figures;
    f.connections.established = 10;
    f.messages = {.sent = 11000, .expected = 11000, .received = 11000};
    f.bytes = {.sent = 341000, .received = 341000, .expected = 341000};
    f.scheduled_in_window = f.sent_in_window = 10000;
    for (int i = 0; i < 10000; ++i) {
      f.response.record(service + 5000);
      f.service.record(service);
      f.own_lag.record(5000);
    }
    complete(10000);
    result.cpu = {{.user_s = 1, .system_s = 3}};
    result.cores = 2;
    result.longest_slice = plan.duration;
  }

  /// Completions in the window, and what they were in the air.
  void complete(std::uint64_t count) {
    result.figures.completed_in_window = count;
    result.figures.completed_service_ns = result.figures.in_flight_ns = count * service;
  }

  /// The same as a closed loop that keeps ten messages in the air.
  void close_loop() {
    plan.arrivals = Arrivals::closed;
    plan.rate_hz = std::nullopt;
    Figures& f = result.figures;
    f.response.clear();
    const std::uint64_t count = 10 * static_cast<std::uint64_t>(plan.duration) / (service + 5000);
    for (std::uint64_t i = 0; i < count; ++i) f.response.record(service + 5000);
    complete(count);
  }

  const Audit& judge(const std::string& name) {
    audits_ = audit(plan, result);
    return *std::ranges::find(audits_, name, &Audit::name);
  }

 private:
  std::vector<Audit> audits_;
};

TEST(Audits, AllPassOnAGoodTrial) {
  Trial trial;
  for (const Audit& check : audit(trial.plan, trial.result)) EXPECT_TRUE(check.passed) << check.name << check.detail;
  trial.close_loop();
  for (const Audit& check : audit(trial.plan, trial.result)) EXPECT_TRUE(check.passed) << check.name << check.detail;
}

TEST(Audits, OfConnectionsThatAreMadeAnewNoneMayFailAndTheClientsAreInFlight) {
  Trial trial;
  trial.close_loop();
  trial.plan.requests_per_connection = 1;
  trial.result.figures.connections.established = 11000;
  for (const Audit& check : audit(trial.plan, trial.result)) EXPECT_TRUE(check.passed) << check.name << check.detail;
}

TEST(Audits, SlowReadersKeepNothingInFlight) {
  Trial trial;
  trial.close_loop();
  trial.plan.slow_readers = 2;
  trial.plan.connections = 12;
  trial.result.figures.connections.established = 12;
  EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
}

TEST(Audits, IdleConnectionsKeepNothingInFlight) {
  Trial trial;
  trial.close_loop();
  trial.plan.connections = 1000;
  trial.plan.busy_connections = 10;
  trial.result.figures.connections.established = 1000;
  for (const Audit& check : audit(trial.plan, trial.result)) EXPECT_TRUE(check.passed) << check.name << check.detail;
  trial.result.figures.connections.established = 999;
  EXPECT_FALSE(trial.judge("connections").passed) << "an idle connection is a connection";
}

TEST(Audits, InRoundsNobodyKnowsHowManyAreInFlightButTheSendLagCounts) {
  Trial trial;
  trial.close_loop();
  trial.plan.round = one_second / 10;
  trial.plan.depth = 3;  // far more than were in the air, as the connections rest between rounds
  EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
  trial.plan.round = 0;
  EXPECT_FALSE(trial.judge("little").passed);

  const auto with_lag_of = [](int percent) {
    Trial late;
    late.close_loop();
    late.plan.round = one_second / 10;
    late.result.figures.own_lag.clear();
    late.result.figures.own_lag.record(late.result.figures.response.find_percentile(50) * percent / 100);
    return late.judge("generator");
  };
  EXPECT_TRUE(with_lag_of(40).passed) << with_lag_of(40).detail;
  EXPECT_FALSE(with_lag_of(60).passed) << with_lag_of(60).detail;
}

TEST(Audits, TheGeneratorIsNotSlowBesideTimesThatNobodyKnows) {
  Trial trial;
  trial.result.figures.response.clear();
  trial.result.figures.service.clear();
  const Audit& check = trial.judge("generator");
  EXPECT_TRUE(check.passed);
  EXPECT_NE(check.detail.find("response none"), std::string::npos) << check.detail;
}

TEST(Audits, AThreadAtItsLimitIsToldOfCoresThatAreLeft) {
  const auto detail = [](std::size_t cores, std::uint32_t threads, std::uint32_t connections) {
    Trial trial;
    trial.result.cpu[0].system_s = 7.6;
    trial.result.cores = cores;
    trial.plan.threads = threads;
    trial.plan.connections = connections;
    return trial.judge("generator").detail;
  };
  EXPECT_NE(detail(4, 1, 10).find("; more --threads would help, as it may use 4 cores"), std::string::npos);
  EXPECT_EQ(detail(4, 4, 10).find("--threads"), std::string::npos);
  EXPECT_EQ(detail(1, 1, 10).find("--threads"), std::string::npos);
  EXPECT_EQ(detail(4, 1, 1).find("--threads"), std::string::npos);
}

TEST(Audits, HaveTheNamesOfTheContract) {
  Trial trial;
  std::vector<std::string> names;
  for (const Audit& check : audit(trial.plan, trial.result)) names.push_back(check.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"verification", "bytes", "connections", "achieved_rate", "little", "generator"}));
}

struct Fault {
  const char* name;
  const char* audit;
  std::function<void(Trial&)> cause;
  const char* words;  // stands in the detail
};

class AuditFaults : public testing::TestWithParam<Fault> {};

TEST_P(AuditFaults, FailTheirAuditWithTheirFigures) {
  Trial trial;
  GetParam().cause(trial);
  const Audit& check = trial.judge(GetParam().audit);
  EXPECT_FALSE(check.passed);
  EXPECT_NE(check.detail.find(GetParam().words), std::string::npos) << check.detail;
}

const std::vector<Fault> faults{
    Fault{"Lost", "verification", [](Trial& t) { --t.result.figures.messages.received; }, "lost 1"},
    Fault{"Duplicated", "verification",
          [](Trial& t) { ++t.result.figures.messages.received, ++t.result.figures.messages.duplicated; },
          "lost 0, duplicated 1"},
    Fault{"Reordered", "verification", [](Trial& t) { ++t.result.figures.messages.reordered; }, "reordered 1"},
    Fault{"Corrupt", "verification", [](Trial& t) { ++t.result.figures.messages.corrupt; }, "corrupt 1"},
    Fault{"Broken", "verification", [](Trial& t) { ++t.result.figures.errors.protocol; }, "streams broken 1"},
    Fault{"NothingReceived", "verification", [](Trial& t) { t.result.figures.messages = {}; }, "0 replies"},
    Fault{"ForeignLost", "verification",
          [](Trial& t) { t.plan.exchange.emplace(), --t.result.figures.messages.received; }, "without an answer 1"},
    Fault{"ForeignUnexpected", "verification",
          [](Trial& t) {
            t.plan.exchange.emplace();
            --t.result.figures.messages.received, ++t.result.figures.messages.unexpected;
          },
          "1 not, without an answer 0; 0 that match no request"},
    Fault{"ForeignUnasked", "verification",
          [](Trial& t) { t.plan.exchange.emplace(), ++t.result.figures.messages.corrupt; }, "1 that match no request"},
    Fault{"ForeignBroken", "verification",
          [](Trial& t) { t.plan.exchange.emplace(), ++t.result.figures.errors.protocol; }, "streams broken 1"},
    Fault{"BytesMissing", "bytes", [](Trial& t) { --t.result.figures.bytes.received; }, "received 340999"},
    Fault{"BytesTooMany", "bytes", [](Trial& t) { ++t.result.figures.bytes.received; }, "received 341001"},
    Fault{"Refused", "connections",
          [](Trial& t) { --t.result.figures.connections.established, ++t.result.figures.connections.refused; },
          "established 9 of 10 (refused 1"},
    Fault{"RefusedAnew", "connections",
          [](Trial& t) {
            t.plan.requests_per_connection = 1;
            t.result.figures.connections = {.established = 10999, .other = 1};
            t.result.figures.other_connect_error = EADDRNOTAVAIL;
          },
          "established 10999 of 11000 (refused 0, timed out 0, reset 0, other 1: Cannot assign requested address)"},
    Fault{"ClosedEarly", "connections", [](Trial& t) { ++t.result.figures.errors.closed_by_server; }, "ended early 1"},
    Fault{"ResetEarly", "connections", [](Trial& t) { ++t.result.figures.errors.reset; }, "ended early 1"},
    Fault{"NotJoined", "connections", [](Trial& t) { t.result.all_joined = false; }, "not every client"},
    Fault{"FellBehind", "achieved_rate", [](Trial& t) { t.result.figures.scheduled_in_window = 9800; },
          "requested 1000.0/s, scheduled 980.0/s"},
    Fault{"CompletedTooMany", "achieved_rate", [](Trial& t) { t.complete(11200); }, "completed 1120.0/s"},
    Fault{"SlowGenerator", "achieved_rate",
          [](Trial& t) {
            t.complete(9000);
            t.result.cpu[0].system_s = 9;
          },
          "completed 900.0/s"},
    Fault{"TooManyInTheAir", "little", [](Trial& t) { t.result.figures.in_flight_ns += 60'000'000; }, "N 0.1060"},
    Fault{"TooFewInTheAir", "little", [](Trial& t) { t.result.figures.in_flight_ns -= 60'000'000; }, "N 0.0940"},
    Fault{"ClosedLoopThatTimesHalf", "little",
          [](Trial& t) {
            t.close_loop();
            t.result.figures.completed_in_window *= 2;
            t.result.figures.completed_service_ns *= 2;
            t.result.figures.in_flight_ns *= 2;
          },
          "N 10 kept in flight"},
    Fault{"BusyThread", "generator", [](Trial& t) { t.result.cpu[0].system_s = 7.6; }, "busiest thread 86%"},
    Fault{"BusyCores", "generator",
          [](Trial& t) {
            t.result.cores = 1;
            t.result.cpu = {{.user_s = 4.5, .system_s = 0}, {.user_s = 4.5, .system_s = 0}};
          },
          "0.90 of 1 cores"},
    Fault{"LateSender", "generator",
          [](Trial& t) {
            for (int i = 0; i < 200; ++i) t.result.figures.own_lag.record(5 * ms);
          },
          "own send lag p50 5.0 us, p99 5"},
    Fault{"LateReceiver", "generator", [](Trial& t) { t.result.figures.receive_lag.record(53'000); },
          "receive lag p50 53.0 us, p99 53.0 us; beside response p50 105.0 us"}};

INSTANTIATE_TEST_SUITE_P(One, AuditFaults, testing::ValuesIn(faults),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST(Audits, EachFailsByAFault) {
  const Trial trial;
  for (const Audit& check : audit(trial.plan, trial.result))
    EXPECT_TRUE(std::ranges::any_of(faults, [&](const Fault& fault) { return fault.audit == check.name; }))
        << check.name << " has no fault that fails it";
}

TEST(Audits, StateAnOverloadThatTheServerCaused) {
  Trial trial;
  trial.complete(6000);
  const Audit& check = trial.judge("achieved_rate");
  EXPECT_TRUE(check.passed);
  EXPECT_NE(check.detail.find("overload"), std::string::npos) << check.detail;
  EXPECT_NE(check.detail.find("requested 1000.0/s"), std::string::npos);
  EXPECT_NE(check.detail.find("completed 600.0/s"), std::string::npos);
}

TEST(Audits, AServerMayCatchUpWithWhatWasDueInTheWarmup) {
  Trial trial;
  trial.complete(10200);
  EXPECT_TRUE(trial.judge("achieved_rate").passed);
  EXPECT_TRUE(trial.judge("achieved_rate").detail.starts_with("the server caught up"))
      << trial.judge("achieved_rate").detail;
  trial.plan.warmup = 0;
  EXPECT_FALSE(trial.judge("achieved_rate").passed) << "nothing was due before";
}

TEST(Audits, AServerThatAnswersWronglyIsNotSlowForIt) {
  Trial trial;
  trial.complete(6000);
  trial.result.figures.wrong_in_window = 4000;
  EXPECT_TRUE(trial.judge("achieved_rate").passed);
  EXPECT_TRUE(trial.judge("achieved_rate").detail.starts_with("requested 1000.0/s"))
      << trial.judge("achieved_rate").detail;
  EXPECT_NE(trial.judge("achieved_rate").detail.find("answered wrongly 400.0/s"), std::string::npos);
  trial.result.figures.wrong_in_window = 1000;
  EXPECT_TRUE(trial.judge("achieved_rate").detail.starts_with("overload")) << "and the rest too late";
}

TEST(Audits, AServerWithoutAConnectionIsNotSlow) {
  Trial trial;
  trial.complete(6000);
  trial.result.figures.connections.other = 400;
  trial.result.figures.other_connect_error = EADDRNOTAVAIL;
  const Audit used_up = trial.judge("achieved_rate");
  EXPECT_FALSE(used_up.passed) << "the load's own machine has no ports";
  EXPECT_TRUE(used_up.detail.ends_with(": no connection for the others: Cannot assign requested address"))
      << used_up.detail;
  EXPECT_EQ(used_up.detail.find("overload"), std::string::npos);
  trial.result.figures.connections.other = 0;
  trial.result.figures.connections.refused = 400;
  EXPECT_TRUE(trial.judge("achieved_rate").passed) << "connections has the fault";
  EXPECT_EQ(trial.judge("achieved_rate").detail.find("overload"), std::string::npos);
}

TEST(Audits, ForgiveThePoissonProcessItsChance) {
  Trial trial;
  trial.plan.arrivals = Arrivals::poisson;
  trial.result.figures.scheduled_in_window = 10300;  // three standard deviations
  trial.complete(10300);
  EXPECT_TRUE(trial.judge("achieved_rate").passed);
  trial.plan.arrivals = Arrivals::constant;
  EXPECT_FALSE(trial.judge("achieved_rate").passed);
}

TEST(Audits, LatenessThatTheServerCausedIsNotTheGenerators) {
  Trial trial;
  for (int i = 0; i < 5000; ++i) trial.result.figures.blocked_lag.record(500 * ms);
  EXPECT_TRUE(trial.judge("generator").passed);
}

TEST(Audits, TimeSpentSpinningIsTimeLeft) {
  Trial trial;
  trial.result.cpu[0] = {.user_s = 2, .system_s = 7.6, .spun_s = 4};
  const Audit& check = trial.judge("generator");
  EXPECT_TRUE(check.passed) << check.detail;
  EXPECT_NE(check.detail.find("busiest thread 56%"), std::string::npos) << check.detail;
  EXPECT_NE(check.detail.find("0.40 cores more for busy waiting"), std::string::npos) << check.detail;
  trial.result.cpu[0].spun_s = 1;
  EXPECT_FALSE(trial.judge("generator").passed);
}

TEST(Audits, LatenessThatSomebodyAskedForIsNoFaultAndIsSaid) {
  Trial trial;
  for (int i = 0; i < 5000; ++i) trial.result.figures.own_lag.record(150'000);
  EXPECT_FALSE(trial.judge("generator").passed);
  trial.plan.poll_every = 200'000;
  const Audit& check = trial.judge("generator");
  EXPECT_TRUE(check.passed) << check.detail;
  EXPECT_NE(check.detail.find("200.0 us of each as requested"), std::string::npos) << check.detail;
}

TEST(Audits, AReceiveLagThatIsSmallOrNotKnownIsNoFault) {
  Trial trial;
  EXPECT_EQ(trial.judge("generator").detail.find("receive lag"), std::string::npos);
  trial.result.figures.receive_lag.record(52'000);
  EXPECT_TRUE(trial.judge("generator").passed) << trial.judge("generator").detail;
}

TEST(Audits, AClosedLoopStatesItsReceiveLagAndIsNotJudgedByIt) {
  Trial trial;
  trial.close_loop();
  trial.result.figures.receive_lag.record(90'000);
  const Audit& check = trial.judge("generator");
  EXPECT_TRUE(check.passed);
  EXPECT_NE(check.detail.find("receive lag p50 90.0 us"), std::string::npos) << check.detail;
  EXPECT_EQ(check.detail.find("send lag"), std::string::npos) << check.detail;
}

/// It goes as fast as the slower of the two. An open loop that could not keep its rate is not what was asked for.
TEST(Audits, AClosedLoopAtTheLimitOfTheGeneratorIsBelieved) {
  Trial trial;
  trial.result.cpu = {{.user_s = 9, .system_s = 1}};
  EXPECT_FALSE(trial.judge("generator").passed);
  EXPECT_FALSE(believed(trial.plan, audit(trial.plan, trial.result)));
  trial.close_loop();
  EXPECT_FALSE(trial.judge("generator").passed);
  EXPECT_TRUE(at_its_limit(trial.plan, trial.judge("generator")));
  EXPECT_TRUE(believed(trial.plan, audit(trial.plan, trial.result)));
  trial.result.figures.messages.corrupt = 1;
  EXPECT_FALSE(believed(trial.plan, audit(trial.plan, trial.result)));
}

TEST(Audits, SayThatAFewMessagesAreTooFewForLittlesLaw) {
  Trial trial;
  trial.complete(99);
  trial.result.figures.in_flight_ns = 0;
  EXPECT_TRUE(trial.judge("little").passed);
  EXPECT_NE(trial.judge("little").detail.find("too few"), std::string::npos);
}

/// As where requests of 50 ms among others of 0.1 ms began before the window and were answered within it.
TEST(Audits, LittlesLawKnowsWhatWasUnderWayAtTheEndsOfTheWindow) {
  for (const std::int64_t beyond : {-60'000'000, 60'000'000, 500'000'000}) {
    Trial trial;
    trial.result.figures.in_flight_ns = static_cast<std::uint64_t>(1'000'000'000 - beyond);
    EXPECT_FALSE(trial.judge("little").passed) << trial.judge("little").detail;
    trial.result.figures.service_beyond_ns = beyond;
    EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
  }
}

/// As where six of ten clients wait longer than the window for the server to accept their next connection.
TEST(Audits, LittlesLawKnowsWhoWaitedAllTheWindowInAClosedLoop) {
  Trial trial;
  trial.close_loop();
  Figures& f = trial.result.figures;
  const std::uint64_t answered = f.response.count() * 4 / 10;
  f.response.clear();
  for (std::uint64_t i = 0; i < answered; ++i) f.response.record(service + 5000);
  trial.complete(answered);
  EXPECT_FALSE(trial.judge("little").passed) << trial.judge("little").detail;
  f.response_beyond_ns = -6 * static_cast<std::int64_t>(trial.plan.duration);
  EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
}

/// Each slice of a window has two ends, at which the slowest messages are under way.
TEST(Audits, LittlesLawAllowsAClosedLoopForTheEndsOfEachSlice) {
  Trial trial;
  trial.close_loop();
  trial.complete(trial.result.figures.completed_in_window * 94 / 100);
  trial.result.longest_slice = 10 * service;  // of which the slowest are a tenth
  EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
  trial.result.longest_slice = trial.plan.duration;
  EXPECT_FALSE(trial.judge("little").passed) << trial.judge("little").detail;
}

/// The good trial over datagrams, of which the network lost, repeated and disordered some.
Trial lossy() {
  Trial trial;
  trial.plan.url.transport = "udp";
  Figures& f = trial.result.figures;
  f.messages.received -= 330;  // of 11000
  f.messages.duplicated = 0;
  f.bytes.received = f.bytes.expected = 341000 - 330 * 31;
  f.response.clear();
  for (int i = 0; i < 9700; ++i) f.response.record(service + 5000);
  trial.complete(9700);
  // 300 in the window, each in the air for 1 s until it was given up.
  f.given_up_service_ns = f.given_up_response_ns = 300'000'000'000;
  f.in_flight_ns += f.given_up_service_ns;
  return trial;
}

TEST(Audits, BelieveALossyTrialAndStateTheLoss) {
  Trial trial = lossy();
  for (const Audit& check : audit(trial.plan, trial.result)) EXPECT_TRUE(check.passed) << check.name << check.detail;
  EXPECT_NE(trial.judge("verification").detail.find("lost 330 (3%)"), std::string::npos)
      << trial.judge("verification").detail;
  EXPECT_TRUE(trial.judge("achieved_rate").detail.starts_with("loss: 300 of the window's messages (3%)"))
      << trial.judge("achieved_rate").detail;
  EXPECT_NE(trial.judge("little").detail.find("30.0000 given up"), std::string::npos) << trial.judge("little").detail;
}

TEST(Audits, StateCopiesDisorderAndLatenessOfMessages) {
  Trial trial = lossy();
  MessageCounts& m = trial.result.figures.messages;
  m.received += 107;
  m.duplicated = 107;
  m.reordered = 1077;
  m.late = 11;
  trial.result.figures.socket_drops = 4;
  const Audit& check = trial.judge("verification");
  EXPECT_TRUE(check.passed);
  EXPECT_NE(check.detail.find("lost 330 (3%), duplicated 107 (0.993%), reordered 1077 (9.99%), late 11 (0.1%); dropped "
                              "by the generator's own sockets 4"),
            std::string::npos)
      << check.detail;
}

TEST(Audits, DoNotBelieveADamagedMessageOverAnyTransport) {
  Trial trial = lossy();
  trial.result.figures.messages.corrupt = 1;
  EXPECT_FALSE(trial.judge("verification").passed);
  EXPECT_NE(trial.judge("verification").detail.find("corrupt 1;"), std::string::npos);
}

TEST(Audits, TellAnOverloadFromTheLossThatComesWithIt) {
  Trial trial = lossy();
  trial.complete(6000);
  trial.result.figures.in_flight_ns += trial.result.figures.given_up_service_ns;
  const Audit& check = trial.judge("achieved_rate");
  EXPECT_TRUE(check.passed);
  EXPECT_TRUE(check.detail.starts_with("overload: the server answers slower than the requested rate; loss: 300 of"))
      << check.detail;
}

TEST(Audits, LossIsNoExcuseForAStream) {
  Trial trial = lossy();
  trial.plan.url.transport = "tcp";
  EXPECT_FALSE(trial.judge("verification").passed);
}

TEST(Audits, WhatWasGivenUpCountsInLittlesLaw) {
  Trial trial = lossy();
  trial.result.figures.given_up_service_ns /= 2;
  EXPECT_FALSE(trial.judge("little").passed) << trial.judge("little").detail;
}

/// An answer that came after it was given up stands in the histogram, but in no figure of the law beside its share of
/// what was given up.
TEST(Audits, ALateAnswerIsNotCountedTwiceInLittlesLaw) {
  Trial trial;
  trial.plan.url.transport = "udp";
  trial.close_loop();
  Figures& f = trial.result.figures;
  constexpr std::int64_t second = 1'000'000'000;
  for (int i = 0; i < 20; ++i) f.response.record(2 * second);
  f.late_responses = f.late_in_window = 20;
  f.late_response_ns = 40 * second;
  f.completed_in_window += 20;
  // Each of them stood in the way of 1 s of the loop's other messages until it was given up.
  f.given_up_service_ns = f.given_up_response_ns = 20 * second;
  const std::uint64_t instead = 20 * second / (service + 5000);
  f.completed_in_window -= instead;
  f.completed_service_ns -= instead * service;
  f.in_flight_ns += 20 * second - instead * service;
  EXPECT_TRUE(trial.judge("little").passed) << trial.judge("little").detail;
  f.late_responses = 0;
  f.late_response_ns = 0;
  EXPECT_FALSE(trial.judge("little").passed) << trial.judge("little").detail;
}

}  // namespace
}  // namespace netdyno::load
