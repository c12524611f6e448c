#include "loadgen/plan/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <map>

#include "tests/cpp/property.hpp"

namespace netdyno::load {
namespace {

LoadPlan open_loop(Arrivals arrivals, double rate_hz, std::uint32_t connections, std::uint32_t threads) {
  LoadPlan plan;
  plan.arrivals = arrivals;
  plan.rate_hz = rate_hz;
  plan.connections = connections;
  plan.threads = threads;
  return plan;
}

/// All arrivals before `end` of all threads: intended time, and the connection's number in the whole generator.
std::multimap<Nanos, std::uint32_t> arrivals_before(const LoadPlan& plan, Nanos start, Nanos end, Nanos elapsed = 0) {
  std::multimap<Nanos, std::uint32_t> all;
  for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
    const ThreadShare share = make_thread_share(plan, thread);
    const auto schedule = make_schedule(plan, share.select_speakers(plan), elapsed);
    schedule->start(start);
    while (schedule->next().intended < end) {
      const Arrival arrival = schedule->take();
      all.emplace(arrival.intended, share.global(arrival.connection));
    }
  }
  return all;
}

PROPERTY(ThreadShare, SharesOutEveryConnectionOnce) {
  const auto connections = draw::between<std::uint32_t>(1, 200);
  const auto threads = draw::between<std::uint32_t>(1, std::min(connections, 9U) + 1);
  std::vector<int> owners(connections);
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const ThreadShare share{thread, threads, connections};
    for (std::uint32_t local = 0; local < share.size(); ++local) {
      const std::uint32_t number = share.global(local);
      RC_ASSERT(share.owns(number));
      RC_ASSERT(share.local(number) == local);
      ++owners[number];
    }
  }
  RC_ASSERT(owners == std::vector<int>(connections, 1));
}

TEST(ChangingRate, KeepsEachStepsRateWhateverTheThreads) {
  LoadPlan plan = open_loop(Arrivals::constant, 2000, 7, 1);
  plan.warmup = one_second;
  plan.steps = {{1000, 1000, one_second}, {1000, 5000, one_second}};
  for (const std::uint32_t threads : {1U, 3U}) {
    plan.threads = threads;
    const auto all = arrivals_before(plan, 1000, 1000 + 3 * one_second);
    EXPECT_EQ(all.size(), 5000U);
    EXPECT_EQ(std::distance(all.begin(), all.lower_bound(1000 + one_second)), 1000);
    EXPECT_EQ(std::distance(all.begin(), all.lower_bound(1000 + 2 * one_second)), 2000);
    EXPECT_EQ(std::distance(all.begin(), all.lower_bound(1000 + 5 * one_second / 2)), 3000);
  }
}

TEST(ChangingRate, MayBeRandom) {
  LoadPlan plan = open_loop(Arrivals::poisson, 2000, 7, 3);
  plan.warmup = 0;
  plan.steps = {{1000, 1000, one_second}, {9000, 9000, one_second}};
  const auto all = arrivals_before(plan, 0, 2 * one_second);
  const auto first = std::distance(all.begin(), all.lower_bound(one_second));
  EXPECT_NEAR(static_cast<double>(first), 1000, 5 * std::sqrt(1000.0));
  EXPECT_NEAR(static_cast<double>(all.size()) - static_cast<double>(first), 9000, 5 * std::sqrt(9000.0));
}

TEST(ConstantRate, SpacesTheWholeGeneratorEvenlyWhateverTheThreads) {
  for (const std::uint32_t threads : {1U, 2U, 3U}) {
    const auto all = arrivals_before(open_loop(Arrivals::constant, 1e6, 7, threads), 1000, 1000 + 21'000);
    ASSERT_EQ(all.size(), 21U);
    std::uint64_t k = 0;
    for (const auto& [intended, connection] : all) {
      EXPECT_EQ(intended, static_cast<Nanos>(1000 + k * 1000));
      EXPECT_EQ(connection, k % 7);
      ++k;
    }
  }
}

/// How many arrivals each connection has.
std::map<std::uint32_t, int> count_by_connection(const std::multimap<Nanos, std::uint32_t>& all) {
  std::map<std::uint32_t, int> counts;
  for (const auto& [intended, connection] : all) ++counts[connection];
  return counts;
}

TEST(BusyConnections, AreTheFirstAndDealtOutToAllThreads) {
  LoadPlan plan = open_loop(Arrivals::constant, 1e6, 100, 3);
  plan.busy_connections = 7;
  const std::map<std::uint32_t, int> three_each{{0, 3}, {1, 3}, {2, 3}, {3, 3}, {4, 3}, {5, 3}, {6, 3}};
  EXPECT_EQ(count_by_connection(arrivals_before(plan, 1000, 1000 + 21'000)), three_each);
  for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
    const ThreadShare share = make_thread_share(plan, thread);
    EXPECT_EQ(share.size(), thread == 0 ? 34U : 33U) << "all are connected";
    EXPECT_EQ(share.select_speakers(plan).size(), thread == 0 ? 3U : 2U);
  }
  plan.arrivals = Arrivals::closed;
  plan.depth = 3;
  EXPECT_EQ(count_by_connection(arrivals_before(plan, 1000, 2000)), three_each);
}

TEST(BusyConnections, HaveTheWholeRateOfRandomArrivals) {
  LoadPlan plan = open_loop(Arrivals::poisson, 10'000, 100, 3);
  plan.busy_connections = 7;
  for (const bool changing : {false, true}) {
    if (changing) plan.steps = {{10'000, 10'000, one_second}};
    const auto all = arrivals_before(plan, 0, one_second);
    EXPECT_NEAR(static_cast<double>(all.size()), 10'000, 5 * std::sqrt(10'000.0));
    const auto counts = count_by_connection(all);
    EXPECT_EQ(counts.size(), 7U);
    EXPECT_EQ(counts.rbegin()->first, 6U);
    for (const auto& [connection, count] : counts) EXPECT_NEAR(count, 10'000.0 / 7, 5 * std::sqrt(10'000.0 / 7));
  }
}

TEST(Share, ProgramsTogetherSendWhatOneWould) {
  LoadPlan plan = open_loop(Arrivals::constant, 1e6, 7, 2);
  const auto whole = arrivals_before(plan, 1000, 1000 + 21'000);
  std::multimap<Nanos, std::uint32_t> parts;
  std::uint32_t connections = 0;
  double rate_hz = 0;
  plan.share.count = 3;
  for (plan.share.index = 0; plan.share.index < plan.share.count; ++plan.share.index) {
    parts.merge(arrivals_before(plan, 1000, 1000 + 21'000));
    const LoadPlan own = own_part(plan);
    connections += own.connections;
    rate_hz += *own.rate_hz;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(connections, 7U);
  EXPECT_DOUBLE_EQ(rate_hz, 1e6);
}

TEST(Share, PoissonArrivalsOfSeveralProgramsAddUpAndDiffer) {
  LoadPlan plan = open_loop(Arrivals::poisson, 10'000, 10, 1);
  plan.share.count = 2;
  const auto first = arrivals_before(plan, 0, one_second);
  plan.share.index = 1;
  const auto second = arrivals_before(plan, 0, one_second);
  EXPECT_NEAR(static_cast<double>(first.size() + second.size()), 10'000, 5 * std::sqrt(10'000.0));
  EXPECT_NE(first.begin()->first, second.begin()->first);
}

TEST(ConstantRate, GoesOnWhereAnEarlierPartEnded) {
  // 300 a second: 13.5 in 45 ms. Parts that all restart would have 13 or 14 each, and be off by the same every time.
  constexpr Nanos part = 45'000'000;
  for (const std::uint32_t threads : {1U, 2U}) {
    const LoadPlan plan = open_loop(Arrivals::constant, 300, 7, threads);
    std::multimap<Nanos, std::uint32_t> parts;
    for (Nanos elapsed = 0; elapsed < 20 * part; elapsed += part)
      parts.merge(arrivals_before(plan, elapsed, elapsed + part, elapsed));
    EXPECT_EQ(parts, arrivals_before(plan, 0, 20 * part));
  }
}

TEST(ConstantRate, DoesNotDrift) {
  // 3 messages a second: a gap of 333,333,333.33 ns. After an hour the 10,800th is due at 3600 s to the nanosecond.
  const auto schedule = make_schedule(open_loop(Arrivals::constant, 3, 1, 1), {});
  schedule->start(0);
  for (int i = 0; i < 10'800; ++i) schedule->take();
  EXPECT_EQ(schedule->next().intended, 3600 * one_second);
}

TEST(PoissonRate, HasTheRateTheSpreadAndTheConnectionsOfAPoissonProcess) {
  constexpr double rate = 50'000;
  const auto all = arrivals_before(open_loop(Arrivals::poisson, rate, 10, 2), 0, one_second);
  EXPECT_NEAR(static_cast<double>(all.size()), rate, 5 * std::sqrt(rate));

  double squares = 0;
  std::map<std::uint32_t, int> per_connection;
  Nanos before = 0;
  for (const auto& [intended, connection] : all) {
    const double gap = static_cast<double>(intended - before) * rate / 1e9;
    squares += gap * gap;
    before = intended;
    ++per_connection[connection];
  }
  // The second moment of an exponential distribution with mean 1 is 2; of even gaps it would be 1.
  EXPECT_NEAR(squares / static_cast<double>(all.size()), 2, 0.15);
  ASSERT_EQ(per_connection.size(), 10U);
  for (const auto& [connection, count] : per_connection) EXPECT_NEAR(count, rate / 10, 5 * std::sqrt(rate / 10));
}

TEST(PoissonRate, RepeatsWithTheSeedAndChangesWithIt) {
  LoadPlan plan = open_loop(Arrivals::poisson, 1000, 4, 2);
  const auto first = arrivals_before(plan, 0, one_second);
  EXPECT_EQ(arrivals_before(plan, 0, one_second), first);
  plan.seed = 2;
  EXPECT_NE(arrivals_before(plan, 0, one_second), first);
}

TEST(ClosedLoop, KeepsItsDepthAndFollowsTheAnswers) {
  LoadPlan plan;
  plan.connections = 2;
  plan.depth = 2;
  const auto schedule = make_schedule(plan, {0, 1, 2});
  EXPECT_EQ(schedule->next().intended, never);
  schedule->start(5);
  for (const std::uint32_t connection : {0U, 1U, 0U, 1U}) {
    EXPECT_EQ(schedule->next().intended, 5);
    EXPECT_EQ(schedule->take().connection, connection);
  }
  EXPECT_EQ(schedule->next().intended, never);
  schedule->note_answered(1, 70);
  schedule->note_answered(0, 71);
  EXPECT_EQ(schedule->next().intended, 70);
  EXPECT_EQ(schedule->take().connection, 1U);
  EXPECT_EQ(schedule->take().intended, 71);
  EXPECT_EQ(schedule->next().intended, never);
}

TEST(ClosedLoop, InRoundsSendsWithTheOthersAtTheNextMultiple) {
  LoadPlan plan;
  plan.connections = 3;
  plan.round = 100;
  const auto schedule = make_schedule(plan, {0, 1, 3});
  schedule->start(1005);
  for (const std::uint32_t connection : {0U, 1U, 2U}) {
    EXPECT_EQ(schedule->next().intended, 1005);
    EXPECT_EQ(schedule->take().connection, connection);
  }
  schedule->note_answered(1, 1006);
  schedule->note_answered(0, 1104);
  schedule->note_answered(2, 1105);  // the round that begins just now is missed
  EXPECT_EQ(schedule->next().intended, 1105);
  EXPECT_EQ(schedule->take().connection, 1U);
  EXPECT_EQ(schedule->next().intended, 1105);
  EXPECT_EQ(schedule->take().connection, 0U);
  EXPECT_EQ(schedule->take().intended, 1205);
  EXPECT_EQ(schedule->next().intended, never);
}

}  // namespace
}  // namespace netdyno::load
