// What the C++ client contestants share: the record of requests and failures, and the application's ticks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "lib/protocol/framing.hpp"
#include "work.pb.h"

namespace netdyno::client {
namespace {

ClientPlan parse(std::vector<const char*> options = {}) {
  options.insert(options.begin(), {"client", "tcp://127.0.0.1:9", "--warmup", "0"});
  return parse_client_plan(static_cast<int>(options.size()), options.data());
}

/// The answer of a server to a request.
std::string answer_to(std::string_view request) {
  wire::WorkMessage message;
  message.ParseFromArray(request.data(), static_cast<int>(request.size()));
  const wire::WorkRequest work = message.request();
  auto& response = *message.mutable_response();
  response.set_job_id(work.job_id());
  response.set_stamp(work.stamp());
  response.set_is_complete(true);
  const std::string body = message.SerializeAsString();
  const auto header = encode_frame_header(body.size());
  return std::string{header.data(), header.size()} + body;
}

struct Pair {
  explicit Pair(const ClientPlan& parsed) : plan(parsed), journal(plan), first(journal, 0), second(journal, 1) {}
  ClientPlan plan;
  Journal journal;
  Caller first;
  Caller second;

  /// Both are connected, and the load has begun.
  void begin() {
    for (Caller* caller : {&first, &second}) {
      caller->connecting();
      caller->connected();
    }
    journal.begin(load::now_ns());
  }
};

TEST(ClientPlan, HasTheDefaultsOfTheContract) {
  const ClientPlan plan = parse();
  EXPECT_EQ(plan.load.workload, Workload::rpc);
  EXPECT_EQ(plan.load.timeout, 5 * load::one_second);
  EXPECT_EQ(plan.load.connect_timeout, 5 * load::one_second);
  EXPECT_EQ(plan.retry_delay, load::one_second / 10);
  EXPECT_EQ(plan.load.linger, 0);
  EXPECT_EQ(plan.load.arrivals, load::Arrivals::closed);
  EXPECT_EQ(plan.load.depth, 1U);
}

TEST(Failure, IsTheStageAndTheReasonOfALibrarysError) {
  const auto counted = [](Stage stage, Reason reason) { return failure_of({stage, reason}); };
  for (const Reason reason : {Reason::timed_out, Reason::other})
    EXPECT_EQ(counted(Stage::resolve, reason), Failure::resolve_failed);
  EXPECT_EQ(counted(Stage::connect, Reason::refused), Failure::connect_refused);
  EXPECT_EQ(counted(Stage::connect, Reason::timed_out), Failure::connect_timed_out);
  EXPECT_EQ(counted(Stage::connect, Reason::other), Failure::connect_other);
  for (const Stage stage : {Stage::write, Stage::answer, Stage::idle}) {
    EXPECT_EQ(counted(stage, Reason::timed_out), Failure::response_timeout);
    EXPECT_EQ(counted(stage, Reason::closed), Failure::closed);
    EXPECT_EQ(counted(stage, Reason::reset), Failure::reset);
    EXPECT_EQ(counted(stage, Reason::malformed), Failure::protocol);
  }
}

TEST(Limits, AreThoseOfTheCommandLine) {
  const Options options = library_options(parse({"--connect-timeout", "2s", "--timeout", "3s", "--nodelay", "off"}));
  for (const Stage stage : {Stage::resolve, Stage::connect})
    EXPECT_EQ(options.limits.limit_of(stage), std::chrono::seconds{2});
  for (const Stage stage : {Stage::write, Stage::answer})
    EXPECT_EQ(options.limits.limit_of(stage), std::chrono::seconds{3});
  EXPECT_FALSE(options.nodelay);
  EXPECT_FALSE(options.split_writes);
}

TEST(ClientPlan, OfAPartHasItsShareOfTheConnections) {
  EXPECT_EQ(parse({"-c", "5", "--share", "1/2"}).load.connections, 3U);
  EXPECT_EQ(parse({"-c", "5", "--share", "2/2"}).load.connections, 2U);
}

TEST(ClientPlan, TakesALinger) { EXPECT_EQ(parse({"--linger", "50ms"}).load.linger, load::one_second / 20); }

TEST(Journal, BeginsWhenTheFirstAttemptOfEachHasEnded) {
  Pair pair{parse({"-c", "2"})};
  pair.first.failed(Failure::connect_refused);
  pair.first.failed(Failure::connect_refused);  // a second attempt settles nothing
  EXPECT_FALSE(pair.journal.settled());
  pair.second.connecting();
  pair.second.connected();
  EXPECT_TRUE(pair.journal.settled());
  EXPECT_FALSE(pair.second.may_send());
  pair.journal.begin(load::now_ns());
  EXPECT_TRUE(pair.second.may_send());
}

TEST(Journal, FirstAttemptsAddUpToTheInstances) {
  Pair pair{parse({"-c", "2"})};
  pair.first.failed(Failure::resolve_failed);
  pair.second.failed(Failure::connect_timed_out);
  pair.first.connected();
  pair.second.failed(Failure::connect_refused);
  const auto& counts = pair.journal.figures().connections;
  EXPECT_EQ(counts.attempted(), 2U);
  EXPECT_EQ(counts.other, 1U);
  EXPECT_EQ(counts.timed_out, 1U);
  EXPECT_EQ(pair.journal.failures(Failure::connect_refused), 1U);
}

TEST(Journal, AConnectionAfterFailuresIsOneRecovery) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  pair.first.failed(Failure::closed);
  pair.first.failed(Failure::connect_refused);
  pair.first.connected();
  EXPECT_EQ(pair.journal.recovered(), 1U);
  pair.first.failed(Failure::closed);
  pair.first.connected();
  EXPECT_EQ(pair.journal.recovered(), 2U);
}

TEST(Caller, TakesItsAnswerInAnySlicing) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  const std::string answer = answer_to(pair.first.next());
  for (std::size_t i = 0; i + 1 < answer.size(); ++i)
    ASSERT_EQ(pair.first.receive({&answer[i], 1}), Received::incomplete);
  EXPECT_TRUE(pair.first.waiting());
  EXPECT_EQ(pair.first.receive({&answer.back(), 1}), Received::answered);
  EXPECT_FALSE(pair.first.waiting());
  EXPECT_EQ(pair.journal.completed(), 1U);
  EXPECT_EQ(pair.journal.figures().bytes.received, pair.journal.figures().bytes.expected);
}

TEST(Caller, RefusesTheAnswerOfAnother) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  pair.first.next();
  EXPECT_EQ(pair.first.receive(answer_to(pair.second.next())), Received::broken);
  EXPECT_EQ(pair.journal.figures().messages.corrupt, 1U);
  EXPECT_EQ(pair.journal.figures().messages.received, 0U);
}

TEST(Caller, NoticesAnAnswerThatComesAgain) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  const std::string answer = answer_to(pair.first.next());
  EXPECT_EQ(pair.first.receive(answer), Received::answered);
  const std::string next = answer_to(pair.first.next());
  EXPECT_EQ(pair.first.receive(answer), Received::incomplete);
  EXPECT_EQ(pair.first.receive(next), Received::answered);
  EXPECT_EQ(pair.journal.figures().messages.duplicated, 1U);
}

TEST(Caller, StartsANewConnectionWithAnEmptyStream) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  const std::string cut = answer_to(pair.first.next());
  EXPECT_EQ(pair.first.receive(std::string_view{cut}.substr(0, 7)), Received::incomplete);
  pair.first.failed(Failure::closed);
  pair.first.connected();
  EXPECT_EQ(pair.first.receive(answer_to(pair.first.next())), Received::answered);
  const auto& messages = pair.journal.figures().messages;
  EXPECT_EQ(messages.expected - messages.received, 1U);
}

TEST(Journal, NobodySendsAfterTheEnd) {
  Pair pair{parse({"-c", "2"})};
  pair.begin();
  pair.journal.end();
  EXPECT_FALSE(pair.first.may_send());
  EXPECT_FALSE(pair.journal.reached_the_end());
}

/// A loop that comes late once owes all the ticks it slept through, the oldest the latest.
TEST(Application, CountsEveryTickThatABlockHasSwallowed) {
  const std::string file = testing::TempDir() + "client." + std::to_string(getpid()) + ".json";
  const ClientPlan plan = parse({"-c", "1", "--json", file.c_str()});
  Journal journal{plan};
  Application application{plan, journal};
  std::this_thread::sleep_for(std::chrono::milliseconds{105});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  journal.end();
  EXPECT_EQ(application.finish(), 1) << "nothing was answered";
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();

  std::ifstream written{file};
  const auto lag = nlohmann::json::parse(written)["client"]["tick_lag_ns"];
  unlink(file.c_str());
  EXPECT_GE(lag["count"], 10);
  EXPECT_GE(lag["max"], 95'000'000);
  EXPECT_LE(lag["p50"].get<double>(), 0.6 * lag["max"].get<double>());
}

}  // namespace
}  // namespace netdyno::client
