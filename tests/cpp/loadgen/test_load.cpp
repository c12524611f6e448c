// Whole runs of the generator: against servers that misbehave in known ways, and against a contestant.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "lib/measure/process.hpp"
#include "lib/measure/stamp.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/run.hpp"
#include "tests/cpp/loadgen/fake_server.hpp"
#include "tests/cpp/loadgen/load_run.hpp"
#include "tests/cpp/loadgen/server_process.hpp"

namespace netdyno::load {
namespace {

using Then = FakeServer::Then;

/// A hundred messages to a server that behaves like this.
Figures hundred(const FakeServer::Behaviour& behaviour) {
  const FakeServer server{behaviour};
  return measure(one_by_one(server.url(), 100)).figures;
}

TEST(Load, CountsNothingWrongWithAServerThatEchoes) {
  const FakeServer server{FakeServer::echo};
  const LoadPlan plan = one_by_one(server.url(), 100);
  const Measurement result = measure(plan);
  const Figures& f = result.figures;
  EXPECT_EQ(f.connections.established, 1U);
  EXPECT_EQ(f.connect.count(), 1U);
  EXPECT_EQ(f.messages.sent, 100U);
  EXPECT_EQ(f.messages.expected, 100U);
  EXPECT_EQ(f.messages.received, 100U);
  EXPECT_EQ(f.messages.corrupt + f.messages.duplicated + f.messages.reordered, 0U);
  EXPECT_EQ(f.bytes.sent, 3100U);
  EXPECT_EQ(f.bytes.received, 3100U);
  EXPECT_EQ(f.bytes.expected, 3100U);
  EXPECT_EQ(f.scheduled_in_window, 100U);
  EXPECT_EQ(f.sent_in_window, 100U);
  EXPECT_EQ(f.response.count(), 100U);
  EXPECT_EQ(f.service.count(), 100U);
  EXPECT_EQ(f.own_lag.count() + f.blocked_lag.count(), 100U);
  EXPECT_EQ(f.errors.timeout + f.errors.closed_by_server + f.errors.reset + f.errors.protocol, 0U);
  std::uint64_t in_slots = 0;
  for (const auto& slot : result.timeline) in_slots += slot.completed;
  EXPECT_EQ(in_slots, f.completed_in_window);
  const auto audits = audit(plan, result);
  EXPECT_TRUE(passed(audits, "verification"));
  EXPECT_TRUE(passed(audits, "bytes"));
  EXPECT_TRUE(passed(audits, "connections"));
}

TEST(Load, SaysThatTheWindowEndedHoweverSoonTheLastAnswerCame) {
  struct Ends : Quiet {
    void on_window_end() override { ++count; }
    int count = 0;
  };
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 5);
  plan.arrivals = Arrivals::closed;
  for (int i = 0; i < 50; ++i) {
    Ends ends;
    run_load(plan, ends);
    EXPECT_EQ(ends.count, 1);
  }
}

/// However late the observer is: here its callback for the window's start returns only when that is long over.
TEST(Load, SaysHowFarTheWindowWasThoughItIsOver) {
  struct Slow : Quiet {
    void on_window_start() override { std::this_thread::sleep_for(std::chrono::nanoseconds{900 * ms}); }
    void on_progress(const Progress& progress, const Timeline::Slot&) override { reported.push_back(progress.elapsed); }
    void on_window_end() override { reported.push_back(never); }
    std::vector<Nanos> reported;
  } slow;
  const FakeServer server{FakeServer::echo};
  run_load(one_by_one(server.url(), 600), slow);
  EXPECT_EQ(slow.reported, (std::vector<Nanos>{500 * ms, never}));
}

TEST(Load, CountsEveryCorruptMessage) {
  const Figures f = hundred([](int, int message, std::string line) -> FakeServer::Answer {
    if (every_tenth(message)) line[static_cast<std::size_t>(message) % 30] ^= 1;
    return {line};
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
  EXPECT_EQ(f.messages.lost(), 10);
  EXPECT_EQ(f.errors.timeout, 10U);
  EXPECT_EQ(f.response.count(), 90U);
}

TEST(Load, CountsAMessageOfAnotherClientAsCorrupt) {
  const Figures f = hundred([](int, int message, std::string line) -> FakeServer::Answer {
    if (every_tenth(message)) line = stamped_line({1, static_cast<std::uint64_t>(message)}, line.size());
    return {line};
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
  EXPECT_EQ(f.messages.received, 90U);
}

TEST(Load, CountsAMessageThatWasNeverSentAsCorrupt) {
  const Figures f = hundred([](int, int message, std::string line) -> FakeServer::Answer {
    if (every_tenth(message)) line = stamped_line({0, 1000}, line.size());
    return {line};
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
}

TEST(Load, CountsEveryLostMessage) {
  const Figures f = hundred([](int, int message, const std::string& line) -> FakeServer::Answer {
    return {every_tenth(message) ? "" : line};
  });
  EXPECT_EQ(f.messages.lost(), 10);
  EXPECT_EQ(f.messages.received, 90U);
  EXPECT_EQ(f.messages.corrupt, 0U);
  EXPECT_EQ(f.errors.timeout, 10U);
}

TEST(Load, CountsEveryDuplicate) {
  const Figures f = hundred([](int, int message, const std::string& line) -> FakeServer::Answer {
    return {every_tenth(message) ? line + line : line};
  });
  EXPECT_EQ(f.messages.duplicated, 10U);
  EXPECT_EQ(f.messages.received, 110U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.response.count(), 100U);
  EXPECT_EQ(f.bytes.received, f.bytes.expected + 310);
}

TEST(Load, CountsEveryMessageThatCameLate) {
  const Figures f =
      hundred([held = std::string{}](int, int message, const std::string& line) mutable -> FakeServer::Answer {
        if (every_tenth(message)) return held = line, FakeServer::Answer{""};
        return {line + std::exchange(held, "")};
      });
  EXPECT_EQ(f.messages.reordered, 10U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.messages.duplicated, 0U);
  EXPECT_EQ(f.response.count(), 100U);
}

TEST(Load, CountsEveryTruncatedMessageAndFindsTheNext) {
  const Figures f = hundred([](int, int message, std::string line) -> FakeServer::Answer {
    if (every_tenth(message)) line.erase(12, 7);
    return {line};
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
  EXPECT_EQ(f.messages.received, 90U);
  EXPECT_EQ(f.bytes.expected - f.bytes.received, 70U);
}

TEST(Load, CountsTwoMessagesThatRanTogether) {
  const Figures f = hundred([](int, int message, std::string line) -> FakeServer::Answer {
    if (every_tenth(message)) line.back() = 'x';
    return {line};
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
  EXPECT_EQ(f.messages.lost(), 20);
}

TEST(Load, SaysThatTheServerClosedInTheMiddle) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return message == 49 ? FakeServer::Answer{line.substr(0, 10), Then::close} : FakeServer::Answer{line};
  }};
  const LoadPlan plan = one_by_one(server.url(), 100);
  const Measurement result = measure(plan);
  EXPECT_EQ(result.figures.errors.closed_by_server, 1U);
  EXPECT_EQ(result.figures.messages.received, 49U);
  EXPECT_GE(result.figures.messages.lost(), 1);
  EXPECT_FALSE(passed(audit(plan, result), "connections"));
  EXPECT_FALSE(passed(audit(plan, result), "verification"));
  EXPECT_FALSE(passed(audit(plan, result), "achieved_rate"));
}

TEST(Load, SaysThatTheServerReset) {
  const Figures f = hundred([](int, int message, const std::string& line) -> FakeServer::Answer {
    return {line, message == 49 ? Then::reset : Then::go_on};
  });
  EXPECT_EQ(f.errors.reset, 1U);
  EXPECT_EQ(f.errors.closed_by_server, 0U);
}

/// More than one read can take, and the end right behind it: whether the end comes with the same event or with one of
/// its own, everything is read and the end is seen.
TEST(Load, ReadsEverythingBeforeTheEnd) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return {line, message == 2 ? Then::close : Then::go_on};
  }};
  LoadPlan plan = one_by_one(server.url(), 300);
  plan.rate_hz = 40;  // 12 messages, three a connection
  plan.connections = 4;
  plan.size = 1 << 20;
  plan.timeout = 20 * one_second;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.sent, 12U);
  EXPECT_EQ(f.messages.received, 12U);
  EXPECT_GE(f.errors.closed_by_server, 3U) << "a late last answer ends the load before the end behind it is read";
  EXPECT_EQ(f.errors.timeout, 0U);
}

TEST(Load, OneConnectionThatIsClosedLeavesTheOthersAlone) {
  const FakeServer server{[](int connection, int message, const std::string& line) -> FakeServer::Answer {
    return {line, connection == 0 && message == 4 ? Then::close : Then::go_on};
  }};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.connections = 4;
  plan.timeout = 20 * one_second;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.errors.closed_by_server, 1U);
  EXPECT_GE(f.messages.received, 80U);
  EXPECT_EQ(f.scheduled_in_window, 100U);
  EXPECT_EQ(f.messages.sent + f.errors.timeout, 100U) << "what was due on it is no secret";
}

/// Between two messages of an open loop a thread spins, for half of the time at most; in a closed loop, or without a
/// core to spare, never. A busy machine may wake the thread so late that each message is due already, or take the core
/// away while it spins: then once more.
TEST(Load, SpinsForTheNextMessage) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 200);
  const double most_s = 0.5 * 0.2 + 0.05;
  double open_s = 0;
  for (int attempt = 0; attempt < 20 && (open_s == 0 || open_s > most_s); ++attempt)
    open_s = measure(plan).cpu.at(0).spun_s;
  EXPECT_EQ(open_s > 0, online_cores() > 1);
  EXPECT_LE(open_s, most_s);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  EXPECT_EQ(measure(plan).cpu.at(0).spun_s, 0);
}

TEST(Load, OfAnOpenLoopTheKernelTimesTheAnswersUnlessPollsAreRare) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 100);
  const Figures f = measure(plan).figures;
  EXPECT_TRUE(f.all_timed_by_kernel());
  EXPECT_EQ(f.receive_lag.count(), 0U) << "which is in no time";
  plan.poll_every = ms;
  const Figures polled = measure(plan).figures;
  EXPECT_EQ(polled.kernel_timed, 0U);
  EXPECT_GT(polled.receive_lag.count(), 0U);
}

TEST(Load, SpinsForNothingWhereThatIsOff) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 100);
  plan.spin = Spin::off;
  EXPECT_EQ(measure(plan).cpu.at(0).spun_s, 0);
}

/// Each answer takes 5 ms, and one is due every millisecond: they wait for a place, and that is in their times.
TEST(Load, KeepsNoMoreInFlightThanAskedInAnOpenLoop) {
  const auto slow = [](int, int, const std::string& line) -> FakeServer::Answer {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    return {line};
  };
  for (const std::uint32_t places : {1U, 2U}) {
    const FakeServer server{slow};
    LoadPlan plan = one_by_one(server.url(), 40);
    plan.timeout = 5 * one_second;
    plan.flight_is_limited = true;
    plan.depth = places;
    const Figures f = measure(plan).figures;
    EXPECT_EQ(f.messages.received, 40U);
    EXPECT_GT(f.in_flight_ns, static_cast<std::uint64_t>((places - 1) * plan.duration));
    EXPECT_LE(f.in_flight_ns, static_cast<std::uint64_t>(places * plan.duration));
    EXPECT_GT(f.response.max(), 40 * 4 * ms);
    EXPECT_LT(f.service.find_percentile(50), f.response.find_percentile(50) / 2);
    EXPECT_GT(f.blocked_lag.count(), 30U) << "they waited for the server, which is no lag of the generator";
  }
}

/// A message that is given up holds no place: else a server that leaves one message out would get no other.
TEST(Load, WhatIsGivenUpGivesItsPlaceBack) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return {message == 0 ? std::string{} : line};
  }};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.count = 100;
  plan.flight_is_limited = true;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.received, 99U);
  EXPECT_GE(f.errors.timeout, 1U);
}

/// In all, whatever the threads; the window ends with the last answer, long before its time.
TEST(Load, EndsWithTheCount) {
  const FakeServer server{FakeServer::echo};
  for (const bool open : {false, true}) {
    LoadPlan plan = one_by_one(server.url(), 5000);
    if (!open) plan.arrivals = Arrivals::closed;
    if (!open) plan.rate_hz.reset();
    plan.connections = 5;
    plan.threads = 2;
    plan.count = 37;
    const Measurement measured = measure(plan);
    const Figures& f = measured.figures;
    EXPECT_EQ(f.messages.sent, 37U);
    EXPECT_EQ(f.messages.received, 37U);
    EXPECT_EQ(f.completed_in_window, 37U);
    EXPECT_EQ(f.response.count(), 37U);
    EXPECT_LT(measured.duration, plan.duration / 2);
    EXPECT_GE(measured.duration, open ? 36 * ms : 0);
  }
}

TEST(Load, ACountIsOfTheWindow) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 5000);
  plan.warmup = 20 * ms;
  plan.count = 30;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.sent_in_window, 30U);
  EXPECT_EQ(f.messages.sent, 50U);
}

/// As after a pause of the machine: the last of the count are due together, and with more than it has left.
TEST(Load, ACountThatEndsAmongMessagesDueTogetherIsSentWhole) {
  const FakeServer server{FakeServer::echo};
  for (const std::uint64_t count : {30U, 31U, 32U}) {
    LoadPlan plan = one_by_one(server.url(), 5000);
    plan.rate_hz = 1e6;
    plan.count = count;
    const Measurement measured = measure(plan);
    EXPECT_EQ(measured.figures.messages.sent, count);
    EXPECT_LT(measured.duration, 2 * one_second);
  }
}

/// One message that never gets its answer counts as over when it is given up.
TEST(Load, ACountEndsThoughSomethingIsLost) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return {message == 3 ? std::string{} : line};
  }};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.count = 10;
  const Measurement measured = measure(plan);
  EXPECT_EQ(measured.figures.messages.sent, 10U);
  EXPECT_EQ(measured.figures.messages.received, 9U);
  EXPECT_LT(measured.duration, plan.duration / 2);
}

/// A thread that has no connection any more takes no more messages, and no thread waits for it.
TEST(Load, ACountEndsThoughConnectionsDo) {
  const FakeServer server{[](int connection, int, const std::string& line) -> FakeServer::Answer {
    return {line, connection == 0 ? Then::close : Then::go_on};
  }};
  for (const std::uint32_t threads : {1U, 2U}) {
    LoadPlan plan = one_by_one(server.url(), 20'000);
    plan.arrivals = Arrivals::closed;
    plan.rate_hz.reset();
    plan.connections = plan.threads = threads;
    plan.count = 5000;  // the other thread takes long enough for them
    const Measurement measured = measure(plan);
    EXPECT_GE(measured.figures.messages.received, 1U);
    EXPECT_LT(measured.duration, plan.duration / 2);
  }
}

TEST(Load, AConnectionForWhichACountHoldsNothingHasNoMean) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.connections = 7;
  plan.count = 3;
  EXPECT_LE(measure(plan).figures.connection.count(), 3U);
}

TEST(Load, TellsItsStepsApart) {
  const FakeServer server{[](int, int message, const std::string& line) -> FakeServer::Answer {
    return {message == 110 ? line.substr(1) : line};
  }};
  LoadPlan plan = one_by_one(server.url(), 200);
  plan.warmup = 10 * ms;
  plan.steps = {{1000, 1000, 50 * ms}, {1000, 3000, 50 * ms}};
  plan.duration = 100 * ms;
  plan.rate_hz = 1500;
  const Figures f = measure(plan).figures;
  ASSERT_EQ(f.steps.size(), 2U);
  EXPECT_EQ(f.steps[0].sent, 50U);
  EXPECT_EQ(f.steps[1].sent, 100U);
  EXPECT_EQ(f.steps[0].response.count(), 50U);
  EXPECT_EQ(f.steps[1].response.count(), 99U);
  EXPECT_EQ(f.steps[0].completed + f.steps[1].completed, f.completed_in_window);
  EXPECT_EQ(f.steps[0].errors, 0U);
  EXPECT_GE(f.steps[1].errors, 1U);
  EXPECT_EQ(f.steps[0].late + f.steps[1].late, 0U);
}

/// Nothing is answered before 50 messages are there, so the first has waited for at least 49 gaps of 1 ms: the closed
/// loop would never see that.
TEST(Load, TimesRunFromTheIntendedMomentThroughAStall) {
  std::string held;
  const Figures f = hundred([&held](int, int message, const std::string& line) -> FakeServer::Answer {
    held += line;
    return {message >= 49 ? std::exchange(held, "") : ""};
  });
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_GE(f.response.max(), 49 * ms);
  EXPECT_GE(f.response.find_percentile(75), 24 * ms);
}

/// The server reads nothing until the window is over; the messages are larger than the sockets' buffers. They wait in
/// the generator with their intended times, and arrive whole.
TEST(Load, KeepsIntendedTimesAndBytesWhenTheSocketIsFull) {
  FakeServer server{FakeServer::echo, true};
  struct Release : Quiet {
    explicit Release(FakeServer& fake) : fake_(fake) {}
    void on_window_end() override { fake_.release(); }
    FakeServer& fake_;
  } release{server};
  LoadPlan plan = one_by_one(server.url(), 400);
  plan.rate_hz = 50;
  plan.size = 1 << 20;
  plan.timeout = 20 * one_second;
  const Measurement result = run_load(plan, release);
  const Figures& f = result.figures;
  EXPECT_EQ(f.messages.sent, 20U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.messages.corrupt, 0U);
  EXPECT_EQ(f.bytes.sent, 20U << 20);
  EXPECT_EQ(f.bytes.received, 20U << 20);
  EXPECT_GT(f.blocked_lag.count(), 0U);
  EXPECT_GE(f.response.find_percentile(50), 190 * ms);
  EXPECT_GE(f.blocked_lag.find_percentile(50), 1 * ms);
  EXPECT_EQ(f.completed_in_window, 0U);
  EXPECT_EQ(f.sent_in_window, 20U);
}

TEST(Load, AClosedLoopGoesOnAfterALostMessage) {
  const FakeServer server{
      [](int, int message, const std::string& line) -> FakeServer::Answer { return {message == 0 ? "" : line}; }};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz = std::nullopt;
  plan.count = 5;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.errors.timeout, 1U);
  EXPECT_EQ(f.messages.lost(), 1);
  EXPECT_EQ(f.messages.received, 4U);
}

TEST(Load, AnAnswerAfterTheTimeoutIsTimedAsLongAsItTook) {
  std::string first;
  const FakeServer server{[&first](int, int message, const std::string& line) -> FakeServer::Answer {
    if (message == 0) return first = line, FakeServer::Answer{""};
    return {std::exchange(first, "") + line};
  }};
  LoadPlan plan = one_by_one(server.url(), 20'000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz = std::nullopt;
  plan.count = 5;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.errors.timeout, 1U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_GE(f.response.max(), plan.timeout);
}

TEST(Load, ConnectsFromTheSourceAddressesInTurn) {
  FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 10);
  plan.connections = 5;
  plan.source_ips = {"127.0.0.2", "127.0.0.3"};
  EXPECT_EQ(measure(plan).figures.connections.established, 5U);
  server.stop();
  EXPECT_EQ(server.peers(), (std::set<std::string>{"127.0.0.2", "127.0.0.3"}));
}

TEST(Load, FindsAServerOnLocalhost) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 1);
  plan.url.host = "localhost";
  EXPECT_EQ(measure(plan).figures.connections.established, 1U);
}

TEST(Load, ConnectsAtTheAskedRate) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 1);
  plan.connections = 11;
  plan.connect_rate_hz = 100;
  const Nanos began = now_ns();
  EXPECT_EQ(measure(plan).figures.connections.established, 11U);
  EXPECT_GE(now_ns() - began, 100 * ms);
}

TEST(Load, SaysThatNobodyListens) {
  UniqueFd listener = listen_tcp({}, true);
  const Url url = local_endpoint(listener.get());
  listener.reset();
  LoadPlan plan = one_by_one(url, 100);
  plan.connections = 3;
  const Measurement result = measure(plan);
  EXPECT_EQ(result.figures.connections.refused, 3U);
  EXPECT_EQ(result.figures.connections.attempted(), 3U);
  EXPECT_FALSE(passed(audit(plan, result), "connections"));
}

/// Linux drops the first segment of a connection while the accept queue is full (listen(2), tcp_abort_on_overflow).
TEST(Load, SaysThatConnectsTimedOut) {
  ServerOptions options;
  options.backlog = 1;
  const UniqueFd listener = listen_tcp(options, true);
  LoadPlan plan = one_by_one(local_endpoint(listener.get()), 1);
  plan.connections = 10;
  plan.connect_timeout = 100 * ms;
  plan.timeout = 1 * ms;
  const ConnectCounts counts = measure(plan).figures.connections;
  EXPECT_GE(counts.timed_out, 1U);
  EXPECT_EQ(counts.established + counts.timed_out, 10U);
}

TEST(Load, SaysThatASourceAddressIsNotOurs) {
  const FakeServer server{FakeServer::echo};
  LoadPlan plan = one_by_one(server.url(), 1);
  plan.source_ips = {"192.0.2.1"};  // RFC 5737: in use by no host
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.connections.other, 1U);
  EXPECT_EQ(f.other_connect_error, EADDRNOTAVAIL);
}

/// A server that has accepted a connection need not have let it into the room. This one lets in one client with each
/// message it receives; a client outside misses the messages.
Figures chat_in_a_room_that_fills_slowly(Audience audience) {
  std::size_t inside = 1;
  const FakeServer server{[&inside](int, int, const std::string& frame) -> FakeServer::Answer {
                            return {frame, Then::go_on, inside++};
                          },
                          false, FakeServer::frames};
  LoadPlan plan = one_by_one(server.url(), 50);
  plan.workload = Workload::chat;
  plan.audience = audience;
  plan.connections = 6;
  return measure(plan).figures;
}

TEST(Load, StartsAChatWhenEverybodyHasHeardSomething) {
  const Figures f = chat_in_a_room_that_fills_slowly(Audience::all);
  EXPECT_EQ(f.messages.sent, 50U);
  EXPECT_EQ(f.messages.expected, 300U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.bytes.received, f.bytes.expected);
}

TEST(Load, CountsOnesOwnMessageInAChatToOthersAsOneTooMany) {
  const Figures f = chat_in_a_room_that_fills_slowly(Audience::others);
  EXPECT_EQ(f.messages.expected, 250U);
  // The run ends when every connection has what was meant for it; the last message may then still be on its way back.
  EXPECT_GE(f.messages.duplicated, 49U);
  EXPECT_LE(f.messages.duplicated, 50U);
  EXPECT_EQ(f.messages.lost(), 0);
}

TEST(Load, CountsWhatEachReceiverOfAChatMisses) {
  int broadcasts = 0;
  const FakeServer server{[&broadcasts](int, int, const std::string& frame) -> FakeServer::Answer {
                            const bool is_probe = frame.compare(4, 8, "ffffffff") == 0;
                            const bool is_whispered = !is_probe && broadcasts++ % 10 == 5;
                            return {frame, Then::go_on, is_whispered ? 2U : 4U};
                          },
                          false, FakeServer::frames};
  LoadPlan plan = one_by_one(server.url(), 50);
  plan.workload = Workload::chat;
  plan.audience = Audience::all;
  plan.connections = 4;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.expected, 200U);
  EXPECT_EQ(f.messages.lost(), 10);
  EXPECT_EQ(f.messages.duplicated, 0U);
}

TEST(Load, TellsConnectionsApart) {
  FakeServer server{
      [](int connection, int, const std::string& line) -> FakeServer::Answer { return {connection == 1 ? "" : line}; }};
  LoadPlan plan = one_by_one(server.url(), 2000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.connections = 3;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.connection.count(), 3U);
  EXPECT_NEAR(static_cast<double>(f.connection.max()), static_cast<double>(plan.duration), 1e-3 * 2e9)
      << "one was answered nothing, and waited all the time";
  EXPECT_LT(f.connection.find_percentile(50), plan.duration / 4);
}

/// How many messages each connection has brought to a server that echoes; messages of `slow` take that long.
struct Counting {
  explicit Counting(Nanos slow = 0)
      : server{[this, slow](int connection, int, const std::string& line) -> FakeServer::Answer {
          std::this_thread::sleep_for(std::chrono::nanoseconds{slow});
          ++messages[connection];
          return {line};
        }} {}
  std::map<int, int> messages;
  FakeServer server;
};

TEST(Load, MakesAConnectionAnewWhenItsRequestsAreAnswered) {
  Counting counting;
  LoadPlan plan = one_by_one(counting.server.url(), 20'000);
  plan.arrivals = Arrivals::closed;
  plan.rate_hz.reset();
  plan.count = 60;
  plan.connections = 2;
  plan.depth = 2;
  plan.requests_per_connection = 3;
  const Measurement result = measure(plan);
  counting.server.stop();
  const Figures& f = result.figures;
  EXPECT_EQ(f.connections.established, counting.messages.size());
  EXPECT_EQ(f.connect.count(), f.connections.established);
  EXPECT_GT(f.connected_in_window, 2U);
  // The first were there before, and each client may come back once more for what was due in the window.
  EXPECT_LE(f.connected_in_window + 2, f.connections.established);
  EXPECT_GE(f.connected_in_window + 4, f.connections.established);
  std::size_t unfinished = 0;
  for (const auto& [connection, count] : counting.messages) {
    EXPECT_LE(count, 3);
    unfinished += count < 3;
  }
  EXPECT_LE(unfinished, 2U) << "but the last of each client, when the window ends";
  EXPECT_EQ(f.response.count(), f.sent_in_window);
  for (const char* name : {"verification", "bytes", "connections"})
    EXPECT_TRUE(passed(audit(plan, result), name)) << find(audit(plan, result), name).detail;
}

/// A request takes longer than there is until the next, and each has a connection of its own: all wait, none is lost,
/// and their times run from when they were due.
TEST(Load, WhatIsDueWhileAClientIsAwayWaitsForIt) {
  Counting counting{3 * ms};
  LoadPlan plan = one_by_one(counting.server.url(), 50);
  plan.requests_per_connection = 1;
  plan.timeout = 10 * one_second;
  const Figures f = measure(plan).figures;
  counting.server.stop();
  EXPECT_EQ(f.scheduled_in_window, 50U);
  EXPECT_EQ(f.messages.sent, 50U);
  EXPECT_EQ(f.messages.received, 50U);
  EXPECT_EQ(f.connections.established, 50U);
  EXPECT_EQ(counting.messages.size(), 50U);
  EXPECT_GE(f.response.max(), 50 * 3 * ms - 50 * ms);
  EXPECT_GT(f.blocked_lag.count(), 0U) << "that is not the generator's own lateness";
}

/// A server that cannot be reached any more once it has answered the first message.
template <typename Shut>
Figures reached_once(Shut shut) {
  ServerOptions options;
  options.backlog = 1;
  const UniqueFd listener = listen_tcp(options, false);
  LoadPlan plan = one_by_one(local_endpoint(listener.get()), 5000);
  plan.requests_per_connection = 1;
  plan.connect_timeout = one_second;
  std::thread server{[&] {
    const Accepted client = accept_next(listener.get(), false);
    char line[64];
    const ssize_t n = recv(client.fd.get(), line, sizeof line, 0);
    shut(listener);
    send(client.fd.get(), line, static_cast<std::size_t>(n), 0);
    recv(client.fd.get(), line, sizeof line, 0);  // until the client has left
  }};
  const Measurement result = measure(plan);
  server.join();
  EXPECT_FALSE(passed(audit(plan, result), "connections"));
  EXPECT_FALSE(passed(audit(plan, result), "achieved_rate"));
  EXPECT_EQ(result.figures.messages.received, 1U);
  return result.figures;
}

TEST(Load, SaysThatAConnectionCouldNotBeMadeAnew) {
  // The generator's threads have copies of this process's descriptors, so a close would change nothing.
  const Figures f = reached_once([](const UniqueFd& listener) { shutdown(listener.get(), SHUT_RDWR); });
  EXPECT_EQ(f.connections.refused, 1U);
}

TEST(Load, SaysThatAConnectionWasNotMadeAnewInTime) {
  std::vector<UniqueFd> crowd;
  const Figures f = reached_once([&crowd](const UniqueFd& listener) {
    const Url url = local_endpoint(listener.get());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(url.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 5; ++i) {  // more than the backlog takes
      crowd.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      connect(crowd.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
  });
  EXPECT_EQ(f.connections.timed_out, 1U);
  EXPECT_LT(f.scheduled_in_window, 5000U) << "its only client is gone, long before the window ends";
}

struct Case {
  const char* name;
  Workload workload;
  Arrivals arrivals;
  std::uint32_t threads;
  Audience audience = Audience::others;
  WriteMode write_mode = WriteMode::gathered;
  std::uint32_t requests_per_connection = 0;
};

class LoadContestant : public testing::TestWithParam<Case> {};

TEST_P(LoadContestant, IsVerifiedWithoutAFault) {
  const Case& c = GetParam();
  ServerProcess server{"threads-global-lock",
                       {"--workload", std::string{netdyno::to_string(c.workload)}, "--audience",
                        c.audience == Audience::all ? "all" : "others"}};
  LoadPlan plan;
  plan.url = server.url();
  plan.workload = c.workload;
  plan.arrivals = c.arrivals;
  plan.audience = c.audience;
  plan.write_mode = c.write_mode;
  plan.threads = c.threads;
  plan.connections = 7;
  plan.size = 64;
  plan.requests_per_connection = c.requests_per_connection;
  plan.depth = c.arrivals == Arrivals::closed ? 3 : 1;
  if (c.arrivals != Arrivals::closed) plan.rate_hz = 1000;
  plan.warmup = 50 * ms;
  plan.duration = 200 * ms;
  if (c.requests_per_connection > 0) {  // more than the first connections take, however busy the machine
    plan.count = 200;
    plan.duration = 20 * one_second;
  }

  const Measurement result = measure(plan);
  const Figures& f = result.figures;
  const auto audits = audit(plan, result);
  for (const char* name : {"verification", "bytes", "connections"})
    EXPECT_TRUE(passed(audits, name)) << std::ranges::find(audits, name, &Audit::name)->detail;
  EXPECT_GT(f.messages.received, 0U);
  EXPECT_EQ(f.errors.timeout, 0U);
  EXPECT_EQ(f.response.count(), f.sent_in_window);
  EXPECT_EQ(f.service.count(), f.sent_in_window);
  std::uint64_t copies = 1;
  if (c.workload == Workload::chat) copies = c.audience == Audience::all ? 7 : 6;
  EXPECT_EQ(f.messages.expected, f.messages.sent * copies);

  const auto totals = server.stop();
  EXPECT_EQ(totals.at("bytes_in"), f.bytes.sent);
  EXPECT_EQ(totals.at("bytes_out"), f.bytes.received);
  EXPECT_EQ(totals.at("connections"), f.connections.established);
  EXPECT_EQ(f.connections.established > 7, c.requests_per_connection > 0);
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, LoadContestant,
    testing::Values(Case{"EchoClosed", Workload::echo, Arrivals::closed, 1},
                    Case{"EchoConstantTwoThreads", Workload::echo, Arrivals::constant, 2},
                    Case{"LinesPoisson", Workload::lines, Arrivals::poisson, 1},
                    Case{"RpcClosedTwoThreads", Workload::rpc, Arrivals::closed, 2},
                    Case{"RpcSplit", Workload::rpc, Arrivals::constant, 1, Audience::others, WriteMode::split},
                    Case{"HttpClosed", Workload::http, Arrivals::closed, 1},
                    Case{"HttpPoissonTwoThreads", Workload::http, Arrivals::poisson, 2},
                    Case{"EchoAnew", Workload::echo, Arrivals::closed, 1, {}, {}, 3},
                    Case{"LinesAnewPoisson", Workload::lines, Arrivals::poisson, 1, {}, {}, 1},
                    Case{"RpcAnewSplitTwoThreads", Workload::rpc, Arrivals::constant, 2, {}, WriteMode::split, 2},
                    Case{"HttpAnewTwoThreads", Workload::http, Arrivals::closed, 2, {}, {}, 5},
                    Case{"ChatOthersClosed", Workload::chat, Arrivals::closed, 1},
                    Case{"ChatOthersPoissonTwoThreads", Workload::chat, Arrivals::poisson, 2},
                    Case{"ChatAllClosedTwoThreads", Workload::chat, Arrivals::closed, 2, Audience::all},
                    Case{"ChatAllSplit", Workload::chat, Arrivals::constant, 1, Audience::all, WriteMode::split}),
    [](const auto& test) { return std::string{test.param.name}; });

}  // namespace
}  // namespace netdyno::load
