#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/measure/stamp.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/run.hpp"

/// Shared by tests of whole runs of the generator.
namespace netdyno::load {

struct Quiet : Observer {
  void on_connected(std::uint64_t) override {}
  void on_window_start() override {}
  void on_progress(const Progress&, const Timeline::Slot&) override {}
  void on_window_end() override {}
  void on_sent(std::uint64_t) override {}
  void on_slice(std::uint64_t, Nanos) override {}
  void on_missed_slice() override {}
  void on_finished() override {}
};

constexpr Nanos ms = 1'000'000;

/// `messages` on one connection, one a millisecond. A busy machine may take a core away for most of the timeout.
inline LoadPlan one_by_one(const Url& url, int messages) {
  LoadPlan plan;
  plan.url = url;
  plan.arrivals = Arrivals::constant;
  plan.rate_hz = 1000;
  plan.duration = messages * ms;
  plan.warmup = 0;
  plan.timeout = one_second;
  return plan;
}

/// Holds the counts of a run together, as protocol/load-result.md does ("Populations").
inline void expect_one_account(const LoadPlan& plan, const Measurement& measured) {
  const Figures& f = measured.figures;
  const MessageCounts& m = f.messages;
  EXPECT_LE(m.sent, m.due);
  EXPECT_GE(m.lost(), 0);
  EXPECT_LE(m.late, f.errors.timeout);
  EXPECT_LE(f.errors.timeout, m.due);
  if (plan.is_foreign()) {
    EXPECT_EQ(m.received + m.unexpected + static_cast<std::uint64_t>(m.lost()), m.due);
    EXPECT_EQ(m.received + f.faults.count(Population::messages), m.due + m.late) << "each has an answer or a fault";
  } else if (plan.workload != Workload::chat) {
    EXPECT_EQ(m.expected, m.sent);
  }
  for (const FaultKind& kind : f.faults.kinds) EXPECT_LE(kind.count, f.count(kind.population)) << kind.what;

  EXPECT_LE(f.scheduled_in_window, m.due);
  EXPECT_LE(f.sent_in_window, f.scheduled_in_window);
  EXPECT_LE(f.response.count(), f.sent_in_window);
  EXPECT_EQ(f.service.count(), f.response.count());
  const std::uint64_t sendings = f.own_lag.count() + f.blocked_lag.count();
  EXPECT_GE(sendings, f.sent_in_window);
  EXPECT_LE(sendings, f.sent_in_window + m.resent);
  if (plan.count > 0) {
    EXPECT_LE(f.scheduled_in_window, plan.count);
  }

  EXPECT_EQ(f.connect.count(), f.connections.established);
  EXPECT_LE(f.connected_in_window, f.connections.established);
  EXPECT_LE(f.errors.closed_by_server + f.errors.reset + f.errors.protocol, f.connections.established);

  EXPECT_LE(measured.duration, plan.duration);
  EXPECT_EQ(static_cast<Nanos>(measured.timeline.size()),
            (measured.duration + measured.interval - 1) / measured.interval);
  std::uint64_t completed = 0;
  for (const Timeline::Slot& slot : measured.timeline) {
    completed += slot.completed;
    EXPECT_EQ(slot.p50_ns.has_value(), slot.completed > 0);
    EXPECT_EQ(slot.p99_ns.has_value(), slot.completed > 0);
  }
  EXPECT_EQ(completed, f.completed_in_window);
}

inline Measurement measure(const LoadPlan& plan) {
  Quiet quiet;
  const Measurement measured = run_load(plan, quiet);
  expect_one_account(plan, measured);
  return measured;
}

inline const Audit& find(const std::vector<Audit>& audits, const std::string& name) {
  return *std::ranges::find(audits, name, &Audit::name);
}

inline bool passed(const std::vector<Audit>& audits, const std::string& name) { return find(audits, name).passed; }

/// A message of `echo`, as the generator sends it.
inline std::string stamped_line(const Stamp& stamp, std::size_t size) {
  std::string line;
  append_stamp(stamp, size - 1, line);
  return line + '\n';
}

inline bool every_tenth(int message) { return message % 10 == 5; }

}  // namespace netdyno::load
