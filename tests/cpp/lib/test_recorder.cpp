#include "lib/measure/recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "tests/cpp/property.hpp"

namespace netdyno::load {
namespace {

constexpr Nanos ms = 1'000'000;
constexpr Window window{1000 * ms, 1250 * ms};

struct Fixture {
  explicit Fixture(const Window& measured = window) : timeline{measured.end - measured.start, 1} {
    recorder.set_window(measured);
  }
  Timeline timeline;
  Recorder recorder{timeline};
  Figures finish() {
    recorder.finish();
    return recorder.figures;
  }
};

TEST(Recorder, TimesBelongToTheWindowOfTheirIntendedMoment) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  recorder.note_sent(990 * ms, 1001 * ms, false);
  recorder.note_answered(990 * ms, 1001 * ms, 1002 * ms);
  recorder.note_sent(1010 * ms, 1011 * ms, false);
  recorder.note_answered(1010 * ms, 1011 * ms, 1300 * ms);
  const Figures f = fixture.finish();
  EXPECT_EQ(f.messages.sent, 2U);
  EXPECT_EQ(f.sent_in_window, 1U) << "meant for the window";
  EXPECT_EQ(f.completed_in_window, 1U) << "answered within it";
  ASSERT_EQ(f.response.count(), 1U);
  EXPECT_EQ(f.response.mean(), 290.0 * ms);
  EXPECT_EQ(f.service.mean(), 289.0 * ms);
  EXPECT_EQ(f.own_lag.mean(), 1.0 * ms);
}

TEST(Recorder, CountsWhatComesLateInTheStepOfItsAnswer) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  recorder.set_steps({1100 * ms, 1250 * ms});
  for (const Nanos answered_at : {1090 * ms, 1120 * ms, 1250 * ms}) {  // the last one after the window
    recorder.note_sent(1010 * ms, 1010 * ms, false);
    recorder.note_answered(1010 * ms, 1010 * ms, answered_at);
    if (answered_at > 1100 * ms) recorder.note_late(answered_at);
  }
  Figures both = fixture.finish();
  both.add(Figures{both});
  ASSERT_EQ(both.steps.size(), 2U);
  EXPECT_EQ(both.messages.late, 4U);
  EXPECT_EQ(both.steps[0].late, 0U);
  EXPECT_EQ(both.steps[1].completed, 2U);
  EXPECT_EQ(both.steps[1].late, 2U);
}

TEST(Recorder, KeepsTheLatenessThatTheServerCausedApart) {
  Fixture fixture;
  fixture.recorder.note_sent(1000 * ms, 1100 * ms, true);
  const Figures f = fixture.finish();
  EXPECT_EQ(f.own_lag.count(), 0U);
  EXPECT_EQ(f.blocked_lag.mean(), 100.0 * ms);
}

TEST(Recorder, IntegratesMessagesInTheAirOverTheWindowOnly) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  recorder.note_sent(900 * ms, 900 * ms, false);  // 50 ms of it in the window
  recorder.note_answered(900 * ms, 900 * ms, 1050 * ms);
  recorder.note_sent(1100 * ms, 1100 * ms, false);  // 100 ms
  recorder.note_sent(1150 * ms, 1150 * ms, false);  // 100 ms, to the end
  recorder.note_answered(1100 * ms, 1100 * ms, 1200 * ms);
  recorder.note_answered(1150 * ms, 1150 * ms, 1400 * ms);
  const Figures f = fixture.finish();
  EXPECT_EQ(f.in_flight_ns, static_cast<std::uint64_t>(250 * ms));
  EXPECT_EQ(f.completed_service_ns, static_cast<std::uint64_t>(250 * ms)) << "150 ms and 100 ms";
  EXPECT_EQ(f.service_beyond_ns, 0) << "100 ms before the window, less the 100 ms of the last within it";
  EXPECT_EQ(f.response_beyond_ns, 100 * ms) << "150 ms of the last after it, less the 50 ms of the first within it";
}

/// The integral of a count is the sum of the times, each cut to the window: two ways to the same figure. So it is that
/// of the completed, but for what lies beyond the window.
PROPERTY(Recorder, IntegralIsTheSumOfTheTimesInTheWindow) {
  const auto spans = draw::many([] {
    const auto from = draw::between<Nanos>(800, 1400);
    return std::pair{from, draw::between<Nanos>(0, 500)};
  });
  struct Event {
    Nanos moment;
    bool begins;
    Nanos began;
  };
  std::vector<Event> events;
  std::uint64_t expected = 0;
  for (const auto& [from, length] : spans) {
    const Nanos begin = from * ms, end = begin + length * ms;
    events.push_back({begin, true, begin});
    events.push_back({end, false, begin});
    expected += static_cast<std::uint64_t>(std::clamp(end, window.start, window.end) -
                                           std::clamp(begin, window.start, window.end));
  }
  std::ranges::stable_sort(events, {}, [](const Event& e) { return std::pair{e.moment, !e.begins}; });
  Fixture fixture;
  for (const Event& event : events) {
    if (event.begins) {
      fixture.recorder.note_sent(event.moment, event.moment, false);
    } else {
      fixture.recorder.note_answered(event.began, event.began, event.moment);
    }
  }
  const Figures f = fixture.finish();
  RC_ASSERT(f.in_flight_ns == expected);
  RC_ASSERT(static_cast<std::int64_t>(f.in_flight_ns) + f.service_beyond_ns ==
            static_cast<std::int64_t>(f.completed_service_ns));
  RC_ASSERT(static_cast<std::int64_t>(f.in_flight_ns) + f.response_beyond_ns ==
            std::llround(f.response.mean() * static_cast<double>(f.response.count())));
}

TEST(Recorder, FillsTheTimeSeriesByCompletion) {
  Fixture fixture{{1000 * ms, 1012 * ms}};
  auto& recorder = fixture.recorder;
  recorder.note_error(1000 * ms, 2);
  for (const Nanos moment : {1001, 1004, 1011}) {
    recorder.note_sent(moment * ms, moment * ms, false);
    recorder.note_answered((moment - 5) * ms, moment * ms, moment * ms);
  }
  recorder.note_error(1011 * ms);
  recorder.note_error(1012 * ms);  // no longer in the window
  recorder.finish();
  const auto slots = fixture.timeline.slots();
  EXPECT_EQ(fixture.timeline.interval(), 5 * ms);
  ASSERT_EQ(slots.size(), 3U) << "the last is shorter";
  EXPECT_EQ(slots[0].completed, 2U);
  EXPECT_EQ(slots[0].errors, 2U);
  EXPECT_EQ(slots[1].completed, 0U);
  EXPECT_EQ(slots[1].p50_ns, std::nullopt) << "it is unknown, and 0 would be the best of all";
  EXPECT_EQ(slots[1].p99_ns, std::nullopt);
  EXPECT_EQ(slots[1].errors, 0U);
  EXPECT_EQ(slots[2].completed, 1U);
  EXPECT_EQ(slots[2].errors, 1U);
  EXPECT_NEAR(static_cast<double>(slots[2].p99_ns.value()), 5.0 * ms, 0.005 * ms);
}

/// Slices of a load one after the other: the window's figures start again, over the same timeline.
TEST(Recorder, BeginsAnewWithAnotherWindow) {
  Fixture fixture{{1000 * ms, 1012 * ms}};
  auto& recorder = fixture.recorder;
  for (const Nanos moment : {1001, 1011}) {
    recorder.note_sent(moment * ms, moment * ms, false);
    recorder.note_answered(moment * ms, moment * ms, moment * ms + 2 * ms);
  }
  const Figures before = fixture.finish();
  fixture.timeline.clear();
  for (const auto& slot : fixture.timeline.slots()) EXPECT_EQ(slot.completed + slot.p50_ns.has_value(), 0U);
  EXPECT_EQ(fixture.timeline.latest().completed, 0U);

  recorder.figures = {};
  recorder.set_window({2000 * ms, 2012 * ms});
  for (const Nanos moment : {1500, 1999, 2006}) {  // between the windows, in the second's warm-up, and in it
    recorder.note_sent(moment * ms, moment * ms, false);
    recorder.note_answered(moment * ms, moment * ms, moment * ms + 3 * ms);
  }
  recorder.note_error(2011 * ms);
  const Figures after = fixture.finish();
  const auto slots = fixture.timeline.slots();
  ASSERT_EQ(slots.size(), 3U);
  EXPECT_EQ(slots[0].completed, 1U) << "sent in the warm-up";
  EXPECT_EQ(slots[1].completed, 1U);
  EXPECT_EQ(slots[2].completed, 0U);
  EXPECT_EQ(slots[2].errors, 1U);
  EXPECT_EQ(before.in_flight_ns, static_cast<std::uint64_t>(3 * ms));
  EXPECT_EQ(after.in_flight_ns, static_cast<std::uint64_t>(5 * ms));
}

/// Answers are read connection by connection, whenever the kernel had them.
TEST(Recorder, IntegratesAnswersThatAreReadInAnotherOrderThanTheyCame) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  recorder.note_sent(1000 * ms, 1000 * ms, false);
  recorder.note_sent(1020 * ms, 1020 * ms, false);
  recorder.note_answered(1020 * ms, 1020 * ms, 1100 * ms);  // 80 ms
  recorder.note_answered(1000 * ms, 1000 * ms, 1050 * ms);  // 50 ms
  recorder.note_sent(1200 * ms, 1200 * ms, false);          // 50 ms, to the end
  EXPECT_EQ(fixture.finish().in_flight_ns, static_cast<std::uint64_t>(180 * ms));
}

TEST(Recorder, CountsNoAnswerForWhichTheTimeSeriesHasNoPlaceAnyMore) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  for (const Nanos moment : {1100, 1200}) recorder.note_sent(moment * ms, moment * ms, false);
  recorder.note_answered(1100 * ms, 1100 * ms, 1150 * ms);
  recorder.roll(1250 * ms);
  recorder.note_answered(1200 * ms, 1200 * ms, 1249 * ms);
  recorder.note_error(1249 * ms);
  const Figures f = fixture.finish();
  std::uint64_t in_slots = 0, errors = 0;
  for (const auto& slot : fixture.timeline.slots()) in_slots += slot.completed, errors += slot.errors;
  EXPECT_EQ(f.response.count(), 2U);
  EXPECT_EQ(f.completed_in_window, 1U);
  EXPECT_EQ(in_slots, 1U);
  EXPECT_EQ(errors, 0U);
}

TEST(Recorder, KnowsWhetherTheKernelTimedAllAnswers) {
  Fixture fixture;
  auto& recorder = fixture.recorder;
  EXPECT_FALSE(recorder.figures.all_timed_by_kernel());
  for (const Nanos moment : {999, 1100, 1200}) {
    recorder.note_answered(moment * ms, moment * ms, moment * ms + 1);
    if (moment < 1200) recorder.note_kernel_stamp(moment * ms);
    EXPECT_EQ(recorder.figures.all_timed_by_kernel(), moment == 1100);
  }
}

TEST(Recorder, KeepsTheReceiveLagOfTheMessagesThatItTimes) {
  Fixture fixture;
  fixture.recorder.note_lag(999 * ms, 7 * ms);
  fixture.recorder.note_lag(1000 * ms, 3 * ms);
  const Figures f = fixture.finish();
  EXPECT_EQ(f.receive_lag.count(), 1U);
  EXPECT_EQ(f.receive_lag.mean(), 3.0 * ms);
}

TEST(Timeline, HasTwentyIntervalsInAShortWindow) {
  const auto interval_ms = [](Nanos duration) { return Timeline::interval_of(duration * ms) / ms; };
  EXPECT_EQ(interval_ms(3600'000), 100);
  EXPECT_EQ(interval_ms(2000), 100);
  EXPECT_EQ(interval_ms(1999), 95);
  EXPECT_EQ(interval_ms(1000), 50);
  EXPECT_EQ(interval_ms(600), 30);
  EXPECT_EQ(interval_ms(100), 5);
  EXPECT_EQ(interval_ms(20), 5) << "and not less";
  for (Nanos duration = 100; duration < 2000; ++duration) EXPECT_GE(Timeline(duration * ms, 1).size(), 20U) << duration;
}

TEST(Timeline, MergesHistogramsAndNotPercentiles) {
  Timeline timeline{100 * ms, 2};
  Histogram fast, slow;
  for (int i = 0; i < 99; ++i) fast.record(10);
  slow.record(1000);
  timeline.deliver(0, fast, 1);
  EXPECT_EQ(timeline.latest().completed, 0U) << "one thread is still missing";
  timeline.deliver(0, slow, 2);
  EXPECT_EQ(timeline.latest().completed, 100U);
  EXPECT_EQ(timeline.latest().p50_ns, 10);
  EXPECT_EQ(timeline.latest().p99_ns, 10);
  EXPECT_EQ(timeline.latest().errors, 3U);
}

TEST(Timeline, KeepsHistogramsForWhoAddsThoseOfSeveralPrograms) {
  Histogram histogram;
  histogram.record(10);
  for (const bool keeps : {false, true}) {
    Timeline timeline{100 * ms, 1, keeps};
    timeline.deliver(0, histogram, 0);
    EXPECT_EQ(timeline.latest().histogram, keeps ? histogram.encode() : "");
  }
}

TEST(Figures, AddUp) {
  Fixture a, b;
  a.recorder.note_sent(1000 * ms, 1001 * ms, false);
  b.recorder.note_sent(1000 * ms, 1003 * ms, true);
  b.recorder.note_lag(1000 * ms, 2 * ms);
  b.recorder.figures.connections.refused = 2;
  b.recorder.figures.other_connect_error = 7;
  Figures sum = a.finish();
  sum.add(b.finish());
  EXPECT_EQ(sum.messages.sent, 2U);
  EXPECT_EQ(sum.sent_in_window, 2U);
  EXPECT_EQ(sum.own_lag.count(), 1U);
  EXPECT_EQ(sum.blocked_lag.count(), 1U);
  EXPECT_EQ(sum.connections.attempted(), 2U);
  EXPECT_EQ(sum.other_connect_error, 7);
  EXPECT_EQ(sum.in_flight_ns, static_cast<std::uint64_t>((249 + 247) * ms));
}

/// The counts of a group one after the other.
template <typename Counts>
using Numbers = std::array<std::uint64_t, sizeof(Counts) / sizeof(std::uint64_t)>;

template <typename Counts>
void number(Counts& counts) {
  Numbers<Counts> numbers;
  std::iota(numbers.begin(), numbers.end(), 1);
  counts = std::bit_cast<Counts>(numbers);
}

template <typename Counts>
void expect_doubled(const Counts& counts) {
  const auto numbers = std::bit_cast<Numbers<Counts>>(counts);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], 2 * (i + 1)) << "count " << i << " of its group";
}

TEST(Figures, AddUpInEveryCount) {
  Figures figures, sum;
  number(figures.connections);
  number(figures.messages);
  number(figures.bytes);
  number(figures.errors);
  sum.add(figures);
  sum.add(figures);
  expect_doubled(sum.connections);
  expect_doubled(sum.messages);
  expect_doubled(sum.bytes);
  expect_doubled(sum.errors);
}

/// Populations of protocol/load-result.md: what is of the life, and no part of a window.
TEST(Figures, OfASliceThatDoesNotCountKeepTheirLife) {
  Fixture slice;
  Recorder& recorder = slice.recorder;
  recorder.note_connected(999 * ms, 1001 * ms);
  recorder.note_scheduled(1000 * ms);
  recorder.note_sent(1000 * ms, 1003 * ms, true);
  recorder.note_lag(1000 * ms, 2 * ms);
  recorder.note_answered(1000 * ms, 1003 * ms, 1005 * ms);
  recorder.note_wrong(1006 * ms);
  Figures& figures = recorder.figures;
  figures.connection.record(5 * ms);
  figures.messages.received = figures.bytes.sent = figures.errors.timeout = figures.socket_drops = 1;
  figures.statuses[200] = 1;
  figures.faults.note("late", Population::messages, 1005 * ms);
  figures.handshakes.times.record(ms);
  figures.other_connect_error = 7;
  const Figures dropped = slice.finish();

  Figures life;
  life.add_life(dropped);
  EXPECT_EQ(life.messages.due + life.messages.sent + life.messages.received, 3U);
  EXPECT_EQ(life.connect.count(), life.connections.established);
  EXPECT_EQ(life.connections.established, 1U);
  EXPECT_EQ(life.bytes.sent + life.errors.timeout + life.socket_drops + life.statuses[200], 4U);
  EXPECT_EQ(life.faults.count(Population::messages), 1U);
  EXPECT_EQ(life.handshakes.times.count(), 1U);
  EXPECT_EQ(life.other_connect_error, 7);
  EXPECT_EQ(life.scheduled_in_window + life.sent_in_window + life.completed_in_window + life.wrong_in_window, 0U);
  EXPECT_EQ(life.connected_in_window + life.in_flight_ns + life.completed_service_ns, 0U);
  EXPECT_EQ(life.service_beyond_ns, 0);
  EXPECT_EQ(life.response.count() + life.service.count() + life.connection.count(), 0U);
  EXPECT_EQ(life.own_lag.count() + life.blocked_lag.count() + life.receive_lag.count(), 0U);

  life.add(dropped);
  EXPECT_EQ(life.messages.sent, 2U);
  EXPECT_EQ(life.sent_in_window, 1U);
  EXPECT_EQ(life.response.count(), 1U);
  EXPECT_EQ(life.connection.count(), 1U);
}

TEST(Faults, AreFewKindsAndTheFirstSeenComesFirst) {
  Faults faults;
  faults.note("b", Population::messages, 20);
  faults.note("b", Population::messages, 30, 2);
  Faults more;
  more.note("a", Population::messages, 10);
  for (int i = 0; i < 9; ++i) more.note("kind " + std::to_string(i), Population::connects, 40 + i);
  faults.add(more);
  ASSERT_EQ(faults.kinds.size(), 8U);
  EXPECT_EQ(faults.kinds[0].what, "a");
  EXPECT_EQ(faults.kinds[1].what, "b");
  EXPECT_EQ(faults.kinds[1].count, 3U);
  EXPECT_EQ(faults.count_of_others(), 3U);
  EXPECT_EQ(faults.count(Population::messages), 4U);
  EXPECT_EQ(faults.count(Population::connects), 9U);
}

TEST(Faults, OfOtherThingsAreOtherKinds) {
  Faults faults;
  faults.note("it ended", Population::messages, 10);
  faults.note("it ended", Population::connections, 20);
  ASSERT_EQ(faults.kinds.size(), 2U);
  EXPECT_EQ(faults.count(Population::messages), 1U);
}

}  // namespace
}  // namespace netdyno::load
