// netdyno-load: connect, load, verify, measure, report. protocol/load-result.md says what the figures mean.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "loadgen/audits.hpp"
#include "loadgen/descriptors.hpp"
#include "loadgen/display.hpp"
#include "loadgen/plan.hpp"
#include "loadgen/result.hpp"
#include "loadgen/run.hpp"

namespace netdyno::load {
namespace {

/// Why nothing could be measured; empty when something was.
std::string failure(const LoadPlan& plan, const Figures& figures) {
  const ConnectCounts& c = figures.connections;
  if (c.established == 0)
    return fmt::format("asked for {} connections to {}, got none: refused {}, timed out {}, reset {}, other {}{}",
                       plan.connections, format_url(plan.url), c.refused, c.timed_out, c.reset, c.other,
                       c.other > 0 ? fmt::format(" ({})", std::strerror(figures.other_connect_error)) : "");
  if (figures.messages.received == 0)
    return fmt::format("sent {} messages over {} connections and got no valid answer", figures.messages.sent,
                       c.established);
  return {};
}

void report(const LoadPlan& plan, const Measurement& measurement) {
  const auto audits = audit(plan, measurement);
  const std::string json = to_json_line(plan, measurement, audits);
  const bool json_to_stdout = plan.json_file == "-";
  if (!plan.json_file.empty() && !json_to_stdout) write_file(plan.json_file, json);
  if (!plan.hdr_file.empty()) write_file(plan.hdr_file, to_hdr_log(plan, measurement));
  fmt::print("{}", json_to_stdout ? json : summary(plan, measurement, audits));
}

}  // namespace
}  // namespace netdyno::load

int main(int argc, char** argv) {
  using namespace netdyno::load;
  std::signal(SIGPIPE, SIG_IGN);
  const LoadPlan plan = parse_load_plan(argc, argv);
  ensure_descriptors(plan);
  Display display{plan};
  const Measurement measurement = run_load(plan, display);
  report(plan, measurement);

  const std::string why = failure(plan, measurement.figures);
  if (why.empty()) return 0;
  fmt::print(stderr, "netdyno-load: {}\n", why);
  return 1;
}
