#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lib/measure/stamp.hpp"
#include "loadgen/audits.hpp"
#include "loadgen/run.hpp"

/// What tests of whole runs of the generator share.
namespace netdyno::load {

struct Quiet : Observer {
  void connected(std::uint64_t) override {}
  void window_start() override {}
  void progress(std::uint64_t, Nanos, const Timeline::Slot&) override {}
  void window_end() override {}
  void sent(std::uint64_t) override {}
  void finished() override {}
};

constexpr Nanos ms = 1'000'000;

/// `messages` on one connection, one a millisecond.
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

inline Measurement measure(const LoadPlan& plan) {
  Quiet quiet;
  return run_load(plan, quiet);
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
