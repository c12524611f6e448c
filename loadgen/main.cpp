// netdyno-load: connect, load, verify, measure, report. protocol/load-result.md says what the figures mean.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "lib/cli/whole_file.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/connect/descriptors.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/report/display.hpp"
#include "loadgen/report/exports.hpp"
#include "loadgen/report/result.hpp"
#include "loadgen/run.hpp"

namespace netdyno::load {
namespace {

/// Exit statuses, of which not_written comes first; 2 means that the command line is wrong.
enum Exit { measured = 0, nothing_measured = 1, not_written = 1, not_believed = 3, assertion_missed = 4 };

/// What a server has to do that gave no valid answer.
std::string_view advise(const LoadPlan& plan) {
  if (plan.is_foreign()) return "";
  if (plan.websocket) return "; the server has to echo each text, or with --workload chat to broadcast it";
  return "; only a netdyno server answers this (load any other by http://... or --send)";
}

/// Why nothing could be measured; empty when something was.
std::string describe_failure(const LoadPlan& plan, const Measurement& measurement) {
  const Figures& figures = measurement.figures;
  const ConnectCounts& c = figures.connections;
  const bool answered = figures.messages.received > 0 || plan.is_write_only();  // whose clients await no answer
  if (c.established > 0 && measurement.duration == 0 && (answered || figures.messages.due == 0))
    return plan.turns ? "no valid slice" : "ended before the measured window began";
  const auto& faults = figures.faults.kinds;
  if (c.established == 0 && !faults.empty())
    return fmt::format("requested {} connections to {}, got none: {}", plan.connections, address_of(plan),
                       faults.front().what);
  if (c.established == 0)
    return fmt::format("requested {} connections to {}, got none: refused {}, timed out {}, reset {}, other {}{}",
                       plan.connections, address_of(plan), c.refused, c.timed_out, c.reset, c.other,
                       c.other > 0 ? fmt::format(" ({})", std::strerror(figures.other_connect_error)) : "");
  if (!answered && !faults.empty()) return fmt::format("no reply was right: {}", fault_text(faults.front(), figures));
  if (!answered)
    return fmt::format("sent {} messages over {} connections and got no valid answer{}", figures.messages.sent,
                       c.established, advise(plan));
  return {};
}

/// By stdio, since fmt::print throws where stderr is closed or full, and the results would go with it.
void complain(const std::string& what) { std::fprintf(stderr, "netdyno-load: %s\n", what.c_str()); }

/// Writes every result that was requested, whatever becomes of the others. Returns whether all could be written.
bool write_results(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  bool all_written = true, uses_stdout = false;
  const auto write = [&](const std::string& name, const std::string& text) {
    uses_stdout = uses_stdout || name == "-";
    const int error = try_write_whole(name, text);
    if (error != 0 && !is_unread(name, error)) complain(describe_unwritten(name, error));
    all_written = all_written && error == 0;
  };
  if (!plan.json_file.empty()) write(plan.json_file, to_json_line(plan, measurement, audits));
  if (!plan.hdr_file.empty()) write(plan.hdr_file, to_hdr_log(plan, measurement));
  if (!plan.csv_file.empty()) write(plan.csv_file, to_csv(plan, measurement));
  if (!plan.percentiles_file.empty()) write(plan.percentiles_file, to_percentiles(measurement));
  if (!plan.prometheus_file.empty()) write(plan.prometheus_file, to_prometheus(plan, measurement, audits));
  if (!uses_stdout) write("-", summary(plan, measurement, audits));
  return all_written;
}

}  // namespace
}  // namespace netdyno::load

int main(int argc, char** argv) {
  using namespace netdyno::load;
  std::signal(SIGPIPE, SIG_IGN);
  netdyno::end_at_signals();
  const LoadPlan whole = parse_load_plan(argc, argv);
  if (whole.is_only_checked) return measured;
  LoadPlan plan = own_part(whole);
  ensure_descriptors(plan);
  Display display{plan};
  const Measurement measurement = run_load(whole, display);
  const std::string why = describe_failure(plan, measurement);
  plan.duration = measurement.duration;  // the report from here on is of that time
  if (!plan.steps.empty() && plan.duration > 0)
    plan.rate_hz = messages_until(plan.steps, plan.duration) / seconds(plan.duration);
  const auto audits = audit(plan, measurement);
  const bool all_written = write_results(plan, measurement, audits);
  if (!why.empty()) {
    complain(why);
    return nothing_measured;
  }
  if (!all_written) return not_written;
  if (!believed(plan, audits)) return not_believed;
  const bool kept = std::ranges::all_of(plan.assertions, [&](const Assertion& assertion) {
    return holds(assertion, value_of(assertion, measurement.figures, seconds(plan.duration)));
  });
  return kept ? measured : assertion_missed;
}
