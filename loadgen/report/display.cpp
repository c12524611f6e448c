#include "loadgen/report/display.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lib/measure/distribution.hpp"
#include "loadgen/report/result.hpp"

namespace netdyno::load {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// "850 ns", "12.3 us", "4.56 ms", "1.23 s"; "-" where there is none.
std::string time_text(double ns) {
  if (std::isnan(ns)) return "-";
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string row(const char* name, const Histogram& histogram) {
  std::string line = fmt::format("{:<14}", name);
  if (histogram.count() == 0) return line + fmt::format("{:>11}\n", "none");
  for (const Percentile& p : percentiles)
    line += fmt::format("{:>11}", time_text(static_cast<double>(histogram.find_percentile(p.percent))));
  return line + fmt::format("{:>11}\n", time_text(histogram.mean()));
}

std::string message_text(const LoadPlan& plan) {
  if (plan.http) return plan.http->method;
  if (plan.exchange) return fmt::format("'{}'", excerpt(plan.exchange->send));
  return fmt::format("{} of {} B", netdyno::to_string(plan.workload), plan.size);
}

std::string load_text(const LoadPlan& plan) {
  std::string which =
      fmt::format("{} over {} connection{}", message_text(plan), plan.connections, plan.connections == 1 ? "" : "s");
  if (plan.busy_connections > 0) which += fmt::format(", {} of which send", plan.busy_connections);
  if (plan.slow_readers > 0) which += fmt::format(", {} of which read slowly", plan.slow_readers);
  if (plan.speaks_at_once) which += ", which send as soon as they are connected";
  if (const auto most = plan.requests_per_connection; most > 0)
    which += fmt::format(" at a time, reconnected after {} request{}", most, most == 1 ? "" : "s");
  std::string extras = plan.poll_every > 0 ? fmt::format(", polled every {:g} ms", 1e3 * seconds(plan.poll_every)) : "";
  if (plan.write_due == WriteDue::joined) extras += ", due messages of a connection joined";
  if (!plan.rate_hz) {
    const std::string rounds = plan.round > 0 ? fmt::format(" in rounds of {:g} s", seconds(plan.round)) : "";
    return fmt::format("{}, closed loop{}, {} in flight each{}", which, rounds, plan.depth, extras);
  }
  if (plan.flight_is_limited)
    which += fmt::format(", at most {} in flight each", plan.depth);
  else if (plan.workload != Workload::chat)
    which += ", any number in flight each";
  const std::string rate = fmt::format(fmt::runtime(*plan.rate_hz < 10 ? "{:.3g}" : "{:.0f}"), *plan.rate_hz);
  return fmt::format("{}, open loop, {} arrivals, {}/s offered{}", which, to_string(plan.arrivals), rate, extras);
}

/// A line for each step: what came in it, and how it was answered.
std::string steps_text(const LoadPlan& plan, const Figures& figures) {
  std::string text;
  for (std::size_t i = 0; i < figures.steps.size(); ++i) {
    const StepFigures& step = figures.steps[i];
    const auto percentile_text = [&step](double percentile) {
      return time_text(step.response.count() > 0 ? static_cast<double>(step.response.find_percentile(percentile))
                                                 : unknown);
    };
    text += fmt::format("{:<28}{:>8} sent{:>8} answered   p50 {:>8}   p99 {:>8}   errors {}\n",
                        fmt::format("step {} {:g} s", text_of(plan.steps[i]), seconds(plan.steps[i].length)), step.sent,
                        step.completed, percentile_text(50), percentile_text(99), step.errors);
  }
  return text;
}

/// "12 (0.3%)"; of nothing, there is no share.
template <typename Count>
std::string share(Count part, std::uint64_t whole) {
  if (whole == 0) return fmt::format("{}", part);
  return fmt::format("{} ({:.3g}%)", part, 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string faults_text(const Figures& figures) {
  std::string text;
  for (const auto& kind : figures.faults.kinds) text += fmt::format("wrong         {}\n", fault_text(kind, figures));
  if (const auto others = figures.faults.count_of_others(); others > 0)
    text += fmt::format("wrong         of further kinds: {}\n", others);
  return text;
}

/// Counts over the whole life stand below the window's, and are larger.
const char* counted_over(const LoadPlan& plan) { return plan.warmup > 0 ? "with the warm-up's: " : ""; }

/// The statuses that came, and what was wrong: the first of it first.
std::string replies_text(const LoadPlan& plan, const Figures& figures) {
  const MessageCounts& m = figures.messages;
  std::string text =
      fmt::format("replies       {}as expected {}, others {}, without an answer {}, of {} due; resent {}\n",
                  counted_over(plan), m.received, m.unexpected, m.lost(), m.due, m.resent);
  std::uint64_t redirects = 0;
  for (const auto& [status, count] : figures.statuses) redirects += status / 100 == 3 ? count : 0;
  if (!figures.statuses.empty()) text += fmt::format("status        {}\n", list_statuses(figures));
  if (redirects > 0) text += fmt::format("redirects     {}, none of which is followed\n", redirects);
  return text + faults_text(figures);
}

std::string handshakes_text(const Handshakes& handshakes) {
  if (handshakes.times.count() == 0) return {};
  return fmt::format("handshakes    {} of {} ({}), {} of which resumed a session\n", handshakes.times.count(),
                     handshakes.protocol, handshakes.cipher, handshakes.resumed);
}

/// Where no reply was right: what was sent first, and what came back.
std::string first_exchange_text(const Figures& figures) {
  const auto& [sent, received] = figures.first_exchange;
  if (figures.messages.received > 0 || sent.empty()) return {};
  return fmt::format("first sent    {}\nfirst came    {}\n", escape(std::string_view{sent}.substr(0, 80)),
                     received.empty() ? "nothing" : escape(std::string_view{received}.substr(0, 80)));
}

/// The outcome of the messages whose times stand above, which mislead without it.
std::string messages_text(const LoadPlan& plan, const Figures& figures) {
  const MessageCounts& m = figures.messages;
  if (plan.is_foreign()) return replies_text(plan, figures);
  std::string text =
      fmt::format("messages      {}lost {}, duplicated {}, reordered {}\n", counted_over(plan),
                  share(m.lost(), m.expected), share(m.duplicated, m.received), share(m.reordered, m.received));
  text += fmt::format("              corrupt {}, late {}", m.corrupt, share(m.late, m.sent));
  if (carries_messages(plan.url))
    text += fmt::format("; dropped by the sockets of this program {}", figures.socket_drops);
  if (m.unsent() > 0) text += fmt::format(", never sent {}", share(m.unsent(), m.due));
  return text + "\n" + faults_text(figures);
}

constexpr Nanos unanswered_syn = one_second;  // after which Linux asks again (tcp(7), tcp_syn_retries)
constexpr std::size_t graph_columns = 58;     // beside its name and figure on a line of 80

void remember(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > graph_columns) values.pop_front();
}

std::string rate_text(std::uint64_t count, Nanos window) {
  if (window == 0) return "-";
  const double rate = per_second(static_cast<double>(count), window);
  return fmt::format(fmt::runtime(rate < 10 ? "{:.3g}" : "{:.1f}"), rate);
}

std::string summary_of_writes(const LoadPlan& plan, const Measurement& measurement) {
  const Figures& f = measurement.figures;
  const ConnectCounts& c = f.connections;
  std::string text =
      fmt::format("{}: {} clients write {} messages of {} B, {:g} ms apart, read nothing and leave\n\n",
                  address_of(plan), plan.connections, plan.messages_each, plan.size, 1e3 * seconds(plan.every));
  text += fmt::format(
      "{:.0f} messages/s written, by the {} clients of {} that finished without an error, in {:.3g} s\n",
      written_per_second(plan, measurement), measurement.finished, plan.connections, seconds(measurement.duration));
  text += "* written, not delivered: no client reads, so nothing here says that the server read or sent any of it\n\n";
  text += fmt::format("connections   {} of {} established; refused {}, timed out {}, reset {}, other {}\n",
                      c.established, plan.connections, c.refused, c.timed_out, c.reset, c.other);
  text += fmt::format("errors        {} clients lost their connection before they had written all\n", f.errors.reset);
  return text + fmt::format("messages      {} of {} written\n", f.messages.sent, f.messages.due);
}

}  // namespace

std::string fault_text(const FaultKind& kind, const Figures& figures) {
  const std::uint64_t all = figures.count(kind.population);
  switch (kind.population) {
    case Population::messages:
      return fmt::format("{} to {} of {}", kind.what, kind.count, all);
    case Population::replies:
      return fmt::format("{}: {} of {} replies", kind.what, kind.count, all);
    case Population::connects:
      return fmt::format("{}: {} of {} connects", kind.what, kind.count, all);
    case Population::connections:
      break;
  }
  return fmt::format("{}: {} of {} connections", kind.what, kind.count, all);
}

std::string summary(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  if (plan.is_write_only()) return summary_of_writes(plan, measurement);
  const Figures& f = measurement.figures;
  const Nanos window = plan.duration;
  CpuTime cpu;
  for (const CpuTime& thread : measurement.cpu) {
    cpu.user_s += thread.user_s;
    cpu.system_s += thread.system_s;
    cpu.spun_s += thread.spun_s;
  }

  std::string text = fmt::format("{}: {}\n\n", address_of(plan), load_text(plan));
  const std::string when = measurement.load_ended && *measurement.load_ended < window
                               ? fmt::format("{:.3g} s, when the last connection had ended, of the {:g} s requested",
                                             seconds(*measurement.load_ended), seconds(window))
                               : fmt::format("{:g} s", seconds(window));
  text += fmt::format("{} messages/s: {} answered in {}; of {} due: sent {}, answered {}\n\n",
                      rate_text(f.completed_in_window, window), f.completed_in_window, when, f.scheduled_in_window,
                      f.sent_in_window, f.response.count());
  text += fmt::format("{:<14}", "");
  for (const Percentile& p : percentiles) text += fmt::format("{:>11}", p.name);
  text += fmt::format("{:>11}\n", "mean");
  text += row(plan.rate_hz ? "response" : "response*", f.response);
  text += row("service", f.service);
  Histogram lag = f.own_lag;
  lag.add(f.blocked_lag);
  text += row("send lag", lag);
  if (f.all_timed_by_kernel()) {
    text += "receive lag   none: times end when the kernel had the answers\n";
  } else {
    text += f.receive_lag.count() > 0 ? row("receive lag", f.receive_lag)
                                      : "receive lag   unknown: arrival times were not requested from the kernel\n";
  }
  text += row("connect", f.connect);
  if (f.handshakes.times.count() > 0) text += row("handshake", f.handshakes.times);
  if (f.chunk_lag.count() > 0) text += row("chunks late", f.chunk_lag);
  text += f.all_timed_by_kernel() ? "  the send lag is the error bar: what the generator adds to these times\n"
                                  : "  the two lags are the error bar: what the generator adds to these times\n";
  if (!plan.rate_hz) text += "* closed loop: a stalled server gets fewer requests, so stalls hardly show here\n";
  text += steps_text(plan, f);
  text += messages_text(plan, f);
  text += first_exchange_text(f);

  const bool may_reconnect =
      plan.requests_per_connection > 0 || (plan.may_reconnect() && f.connections.attempted() > plan.connections);
  text += fmt::format("\nconnections   {} of {} established; refused {}, timed out {}, reset {}, other {}\n",
                      f.connections.established, may_reconnect ? f.connections.attempted() : plan.connections,
                      f.connections.refused, f.connections.timed_out, f.connections.reset, f.connections.other);
  if (may_reconnect)
    text += fmt::format("              {} at a time, {} made a second\n", plan.connections,
                        rate_text(f.connected_in_window, window));
  if (f.connections.closed_after_reply > 0)
    text += fmt::format("              {} closed by the server after a reply\n", f.connections.closed_after_reply);
  if (f.connect.max() >= unanswered_syn && !carries_messages(plan.url))
    text +=
        fmt::format("              the slowest took {:.2f} s: its first attempt had no answer (full accept queue?)\n",
                    static_cast<double>(f.connect.max()) / one_second);
  text += handshakes_text(f.handshakes);
  text += fmt::format("errors        timeout {}, closed by server {}, reset {}, protocol {}\n", f.errors.timeout,
                      f.errors.closed_by_server, f.errors.reset, f.errors.protocol);
  text += fmt::format("generator     {:.2f} cores (user {:.2f} s, system {:.2f} s), peak memory {:.1f} MiB\n",
                      per_second(cpu.user_s + cpu.system_s, window), cpu.user_s, cpu.system_s,
                      static_cast<double>(measurement.max_rss_bytes) / (1 << 20));
  if (plan.rate_hz || plan.round > 0 || plan.is_foreign())
    text += fmt::format("              of these {:.2f} busy waiting for {} (spin {})\n", per_second(cpu.spun_s, window),
                        plan.rate_hz || plan.round > 0 ? "what is due" : "replies", to_string(plan.spin));
  bool all_passed = true;
  bool noted = false;
  for (const Audit& check : audits) {
    if (check.passed && !is_note(check)) continue;
    if (at_its_limit(plan, check)) {
      text += fmt::format("note          bounds: the generator was at its limit: {}\n", check.detail);
      noted = true;
      continue;
    }
    text += fmt::format("{} {}: {}\n", check.passed ? "note         " : "INVALID      ", check.name, check.detail);
    all_passed = all_passed && check.passed;
  }
  if (all_passed && !noted) text += fmt::format("audits        all {} passed\n", audits.size());
  for (const Assertion& assertion : plan.assertions) {
    const double value = value_of(assertion, f, seconds(window));
    const bool counted = assertion.metric == "rate" || assertion.metric == "errors";
    text += fmt::format("assert        {}: {}, {}\n", assertion.text,
                        counted && !std::isnan(value) ? fmt::format("{:.1f}", value) : time_text(value),
                        holds(assertion, value) ? "holds" : "MISSED");
  }
  return text;
}

Display::Display(const LoadPlan& plan) : plan_(plan) {
  view_.draw({fmt::format("connecting {} ...", plan.connections)});
}

void Display::write_event(const std::string& json) const {
  if (plan_.events_fd < 0) return;
  const std::string line = json + "\n";
  // A reader that left concerns the events, not the measurement.
  while (write(plan_.events_fd, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

void Display::on_connected(std::uint64_t established) {
  write_event(fmt::format(R"({{"event":"connected","established":{}}})", established));
  view_.draw({fmt::format("{} connected, warming up {:g} s ...", established, seconds(plan_.warmup))});
}

void Display::on_window_start() { write_event(R"({"event":"window_start"})"); }

void Display::on_progress(const Progress& progress, const Timeline::Slot& latest) {
  const auto& [completed, answered, elapsed] = progress;
  write_event(fmt::format(R"({{"event":"progress","completed":{},"seconds":{:.3f}}})", completed, seconds(elapsed)));
  const double rate = static_cast<double>(completed - last_completed_) / seconds(elapsed - last_elapsed_);
  const auto known = [](std::optional<std::int64_t> ns) { return ns ? static_cast<double>(*ns) : unknown; };
  const double p50 = known(latest.p50_ns), p99 = known(latest.p99_ns);
  const auto errors = static_cast<double>(latest.errors);
  remember(rates_, rate);
  remember(medians_, p50);
  remember(p99s_, p99);
  remember(errors_, errors);
  const std::string done = plan_.count > 0 ? fmt::format("{} of {} answered", answered, plan_.count)
                                           : fmt::format("{:.1f} of {:g} s", seconds(elapsed), seconds(plan_.duration));
  const auto line = [](const char* name, const std::string& now, const std::deque<double>& before) {
    return fmt::format("{:<7}{:>12}  {}", name, now, graph(before));
  };
  view_.draw({done, line("rate", fmt::format("{:.0f}/s", rate), rates_), line("p50", time_text(p50), medians_),
              line("p99", time_text(p99), p99s_), line("errors", fmt::format("{}", latest.errors), errors_)});
  last_completed_ = completed;
  last_elapsed_ = elapsed;
}

void Display::on_window_end() {
  write_event(R"({"event":"window_end"})");
  view_.draw({"waiting for the last answers ..."});
}

void Display::on_slice(std::uint64_t sent, Nanos paused) {
  write_event(fmt::format(R"({{"event":"slice","sent":{},"paused_ns":{}}})", sent, paused));
}

void Display::on_missed_slice() { write_event(R"({"event":"missed"})"); }

void Display::on_sent(std::uint64_t messages) {
  write_event(fmt::format(R"({{"event":"sent","messages":{}}})", messages));
}

}  // namespace netdyno::load
