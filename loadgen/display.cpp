#include "loadgen/display.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace netdyno::load {
namespace {

/// "850 ns", "12.3 us", "4.56 ms", "1.23 s".
std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string row(const char* name, const Histogram& histogram) {
  std::string line = fmt::format("{:<14}", name);
  for (const double percentile : {50.0, 90.0, 99.0, 99.9, 100.0})
    line += fmt::format("{:>11}", time_text(static_cast<double>(histogram.at(percentile))));
  return line + fmt::format("{:>11}\n", time_text(histogram.mean()));
}

std::string load_text(const LoadPlan& plan) {
  std::string which = fmt::format("{} of {} B over {} connection{}", netdyno::to_string(plan.workload), plan.size,
                                  plan.connections, plan.connections == 1 ? "" : "s");
  if (plan.slow_readers > 0) which += fmt::format(", {} of which read slowly", plan.slow_readers);
  if (const auto most = plan.requests_per_connection; most > 0)
    which += fmt::format(" at a time, made anew after {} request{}", most, most == 1 ? "" : "s");
  if (!plan.rate_hz) {
    const std::string rounds = plan.round > 0 ? fmt::format(" in rounds of {:g} s", seconds(plan.round)) : "";
    const std::string looks =
        plan.look_every > 0 ? fmt::format(", looked at every {:g} ms", 1e3 * seconds(plan.look_every)) : "";
    return fmt::format("{}, closed loop{}, {} in flight each{}", which, rounds, plan.depth, looks);
  }
  return fmt::format("{}, open loop, {} arrivals, {:.0f}/s asked", which, to_string(plan.arrivals), *plan.rate_hz);
}

/// "12 (0.3%)"; of nothing, there is no share.
template <typename Count>
std::string share(Count part, std::uint64_t of) {
  if (of == 0) return fmt::format("{}", part);
  return fmt::format("{} ({:.3g}%)", part, 100 * static_cast<double>(part) / static_cast<double>(of));
}

/// What became of the messages whose times stand above: nobody should read those without this.
std::string messages_text(const LoadPlan& plan, const Figures& figures) {
  const MessageCounts& m = figures.messages;
  std::string text = fmt::format("messages      lost {}, duplicated {}, reordered {}\n", share(m.lost(), m.expected),
                                 share(m.duplicated, m.received), share(m.reordered, m.received));
  text += fmt::format("              corrupt {}, late {}", m.corrupt, share(m.late, m.sent));
  if (carries_messages(plan.url))
    text += fmt::format("; dropped by the sockets of this program {}", figures.socket_drops);
  return text + "\n";
}

}  // namespace

std::string summary(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  const Figures& f = measurement.figures;
  const double window = seconds(plan.duration);
  CpuTime cpu;
  for (const CpuTime& one : measurement.cpu) cpu = {cpu.user_s + one.user_s, cpu.system_s + one.system_s};

  std::string text = fmt::format("{}: {}\n\n", format_url(plan.url), load_text(plan));
  text +=
      fmt::format("{:.1f} messages/s: {} sent, {} answered in {:g} s\n\n",
                  static_cast<double>(f.completed_in_window) / window, f.sent_in_window, f.completed_in_window, window);
  text += fmt::format("{:<14}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "", "p50", "p90", "p99", "p99.9", "max", "mean");
  text += row(plan.rate_hz ? "response" : "response*", f.response);
  text += row("service", f.service);
  Histogram lag = f.own_lag;
  lag.add(f.blocked_lag);
  text += row("send lag", lag);
  text += f.receive_lag.count() > 0 ? row("receive lag", f.receive_lag)
                                    : "receive lag   unknown: nobody asked the kernel when the answers arrived\n";
  text += row("connect", f.connect);
  text += "  the two lags are the error bar: what the generator adds to these times\n";
  if (!plan.rate_hz) text += "* closed loop: a stalled server is asked less, so stalls hardly show here\n";
  text += messages_text(plan, f);

  const bool anew = plan.requests_per_connection > 0;
  text += fmt::format("\nconnections   {} of {} established; refused {}, timed out {}, reset {}, other {}\n",
                      f.connections.established, anew ? f.connections.attempted() : plan.connections,
                      f.connections.refused, f.connections.timed_out, f.connections.reset, f.connections.other);
  if (anew)
    text += fmt::format("              {} at a time, {:.1f} made a second\n", plan.connections,
                        static_cast<double>(f.connected_in_window) / window);
  text += fmt::format("errors        timeout {}, closed by server {}, reset {}, protocol {}\n", f.errors.timeout,
                      f.errors.closed_by_server, f.errors.reset, f.errors.protocol);
  text += fmt::format("generator     {:.2f} cores (user {:.2f} s, system {:.2f} s), peak memory {:.1f} MiB\n",
                      (cpu.user_s + cpu.system_s) / window, cpu.user_s, cpu.system_s,
                      static_cast<double>(measurement.max_rss_bytes) / (1 << 20));
  bool all_passed = true;
  for (const Audit& check : audits) {
    if (check.passed && !check.detail.starts_with("overload") && !check.detail.starts_with("loss")) continue;
    text += fmt::format("{} {}: {}\n", check.passed ? "note         " : "NOT BELIEVED ", check.name, check.detail);
    all_passed = all_passed && check.passed;
  }
  if (all_passed) text += fmt::format("audits        all {} passed\n", audits.size());
  return text;
}

Display::Display(const LoadPlan& plan) : plan_(plan), terminal_(isatty(STDERR_FILENO) == 1) {
  live(fmt::format("connecting {} ...", plan.connections));
}

void Display::event(const std::string& json) const {
  if (plan_.events_fd < 0) return;
  const std::string line = json + "\n";
  // A reader that left concerns the events, not the measurement.
  while (write(plan_.events_fd, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

void Display::live(const std::string& line) const {
  if (terminal_) fmt::print(stderr, "\r\033[K{}", line);
}

void Display::connected(std::uint64_t established) {
  event(fmt::format(R"({{"event":"connected","established":{}}})", established));
  live(fmt::format("{} connected, warming up {:g} s ...", established, seconds(plan_.warmup)));
}

void Display::window_start() { event(R"({"event":"window_start"})"); }

void Display::progress(std::uint64_t completed, Nanos elapsed, const Timeline::Slot& latest) {
  event(fmt::format(R"({{"event":"progress","completed":{},"seconds":{:.3f}}})", completed, seconds(elapsed)));
  const double rate = static_cast<double>(completed - last_completed_) / seconds(elapsed - last_elapsed_);
  live(fmt::format("{:5.1f} of {:g} s   {:.0f}/s   p50 {}   p99 {}   errors {}", seconds(elapsed),
                   seconds(plan_.duration), rate, time_text(static_cast<double>(latest.p50_ns)),
                   time_text(static_cast<double>(latest.p99_ns)), latest.errors));
  last_completed_ = completed;
  last_elapsed_ = elapsed;
}

void Display::window_end() {
  event(R"({"event":"window_end"})");
  live("waiting for the last answers ...");
}

}  // namespace netdyno::load
