#include "loadgen/report/audits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace netdyno::load {
namespace {

constexpr double rate_tolerance = 0.01;
constexpr double little_tolerance = 0.05;
constexpr double most_of_a_core = 0.85;
// Send lag against response time, at the median and at the 99th percentile. The messages of a round leave one after the
// other: what that takes belongs to a round, if not to the server.
constexpr double small_beside = 0.25;
constexpr double small_beside_in_rounds = 0.5;
// Receive lag against response time, at the median, where the load keeps to a schedule. It holds the wake-up of a
// thread that waits, which any client has. In a closed loop, a late reading only delays the next request: the lag is
// stated and not judged.
constexpr double receive_small_beside = 0.5;
constexpr std::uint64_t enough_messages = 100;

double as_double(std::uint64_t n) { return static_cast<double>(n); }

double us(const Histogram& histogram, double percentile) {
  return static_cast<double>(histogram.find_percentile(percentile)) / 1e3;
}

double us_of(Nanos time) { return static_cast<double>(time) / 1e3; }

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// Over a transport that may lose messages, loss, copies and disorder are findings and no faults: they are stated with
/// their shares. What came damaged is a fault over any.
Audit verification_of_messages(const Figures& figures) {
  const MessageCounts& m = figures.messages;
  const auto share = [](auto part, std::uint64_t whole) {
    return fmt::format("{} ({:.3g}%)", part, percent(static_cast<double>(part), as_double(whole)));
  };
  return {"verification", m.corrupt == 0 && m.received > 0,
          fmt::format("{} replies verified, corrupt {}; lost {}, duplicated {}, reordered {}, late {}; dropped by the "
                      "generator's own sockets {}",
                      m.received, m.corrupt, share(m.lost(), m.expected), share(m.duplicated, m.received),
                      share(m.reordered, m.received), share(m.late, m.sent), figures.socket_drops)};
}

/// Which statuses came, where some were not expected: a 429 is another fault than a 500.
std::string by_status(const Figures& figures) {
  if (figures.messages.unexpected == 0 || figures.statuses.empty()) return {};
  return fmt::format(" (by status {})", list_statuses(figures));
}

Audit verification(const LoadPlan& plan, const Figures& figures) {
  if (carries_messages(plan.url)) return verification_of_messages(figures);
  const MessageCounts& m = figures.messages;
  const std::string resent =
      m.resent > 0 ? fmt::format("resent {}, as their connection ended before the reply; ", m.resent) : "";
  if (plan.is_foreign())
    return {
        "verification",
        m.unexpected == 0 && m.corrupt == 0 && m.lost() == 0 && figures.errors.protocol == 0 && m.received > 0,
        fmt::format(
            "{}{} messages due: {} replies as expected, {} not{}, without an answer {}; {} that match no request; "
            "streams broken {}",
            resent, m.due, m.received, m.unexpected, by_status(figures), m.lost(), m.corrupt, figures.errors.protocol)};
  const bool clean = m.lost() == 0 && m.duplicated == 0 && m.reordered == 0 && m.corrupt == 0 && m.unexpected == 0 &&
                     figures.errors.protocol == 0 && figures.early_chunks == 0;
  const std::string failed = m.unexpected > 0 ? fmt::format("failed {}, ", m.unexpected) : "";
  const std::string early =
      figures.early_chunks > 0 ? fmt::format("; chunks before they were due {}", figures.early_chunks) : "";
  return {"verification", clean && m.received > 0,
          fmt::format("{}{} replies verified; {}lost {}, duplicated {}, reordered {}, corrupt {}; streams broken {}{}",
                      resent, m.received, failed, m.lost(), m.duplicated, m.reordered, m.corrupt,
                      figures.errors.protocol, early)};
}

Audit bytes(const Figures& figures) {
  return {"bytes", figures.bytes.received == figures.bytes.expected,
          fmt::format("received {}, expected {}", figures.bytes.received, figures.bytes.expected)};
}

/// The reason of a connect failure that no other count covers, such as no ports left. A protocol over TCP states its
/// own reasons (Transport::why).
std::string other_error(const Figures& figures) {
  const int error = figures.other_connect_error;
  if (figures.connections.other == 0 || error == EPROTO || error == 0) return {};
  if (error == unresolved_name) return ": the name of the server was not resolved";
  return fmt::format(": {}", std::strerror(error));
}

std::string closed_after_reply(const ConnectCounts& counts) {
  if (counts.closed_after_reply == 0) return {};
  return fmt::format("; closed by the server after a reply, and reconnected, {}", counts.closed_after_reply);
}

/// No port, descriptor or memory was left here: the load's own machine is why there was no connection.
bool lacks_sockets(const Figures& figures) {
  const int error = figures.other_connect_error;
  const bool is_local =
      error == EADDRNOTAVAIL || error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  return figures.connections.other > 0 && is_local;
}

Audit connections(const LoadPlan& plan, const Measurement& measurement) {
  const ConnectCounts& c = measurement.figures.connections;
  const std::uint64_t ended = measurement.figures.errors.closed_by_server + measurement.figures.errors.reset;
  const std::uint64_t requested = plan.may_reconnect() ? c.attempted() : plan.connections;
  const std::string detail =
      fmt::format("established {} of {} (refused {}, timed out {}, reset {}, other {}{}); ended early {}{}{}",
                  c.established, requested, c.refused, c.timed_out, c.reset, c.other, other_error(measurement.figures),
                  ended, closed_after_reply(c),
                  measurement.all_joined ? "" : "; not every client was known to the server before the load began");
  return {"connections", c.established == requested && ended == 0 && measurement.all_joined, detail};
}

/// CPU seconds without spinning for the next message, which is what a thread does with time that it has left.
double busy_s(const CpuTime& cpu) { return std::max(0.0, cpu.user_s + cpu.system_s - cpu.spun_s); }

double cores_used(const LoadPlan& plan, const Measurement& measurement) {
  double sum = 0;
  for (const CpuTime& cpu : measurement.cpu) sum += busy_s(cpu);
  return per_second(sum, plan.duration);
}

double spun_s(const Measurement& measurement) {
  double sum = 0;
  for (const CpuTime& cpu : measurement.cpu) sum += cpu.spun_s;
  return sum;
}

double run_queue_wait(const Measurement& measurement) {
  double sum = 0;
  for (const CpuTime& cpu : measurement.cpu) sum += cpu.waited_s;
  return sum;
}

/// Neither one thread nor all cores at their limit.
bool has_cpu_to_spare(const LoadPlan& plan, const Measurement& measurement) {
  return busiest_thread(plan, measurement) < most_of_a_core &&
         cores_used(plan, measurement) < most_of_a_core * as_double(measurement.cores);
}

/// `poll_every` is subtracted: a lag of that length was requested, and the report states it.
bool receive_lag_is_small(const LoadPlan& plan, const Figures& figures) {
  return static_cast<double>(figures.receive_lag.find_percentile(50) - plan.poll_every) <=
         receive_small_beside * static_cast<double>(figures.response.find_percentile(50));
}

bool send_lag_is_small(const LoadPlan& plan, const Figures& figures) {
  const double most = plan.round > 0 ? small_beside_in_rounds : small_beside;
  const auto small_at = [&](double percentile) {
    return static_cast<double>(figures.own_lag.find_percentile(percentile) - plan.poll_every) <=
           most * static_cast<double>(figures.response.find_percentile(percentile));
  };
  return small_at(50) && small_at(99);
}

/// Only an open loop asks for a rate. What was scheduled is compared, not the nominal rate, so that the chance in
/// Poisson arrivals is no fault; the schedule itself is held against the nominal rate within four standard deviations.
/// Over a transport that loses messages, what was never answered is loss; what else is missing is an overload. A server
/// that answers wrongly is not slow for it, nor is one to which no connection was made.
Audit achieved_rate(const LoadPlan& plan, const Measurement& measurement) {
  if (!plan.rate_hz) return {"achieved_rate", true, "closed loop: no rate was requested"};
  if (plan.duration == 0) return {"achieved_rate", false, "the measured window never began"};
  const Figures& figures = measurement.figures;
  const double window = seconds(plan.duration);
  const double by_rate = plan.steps.empty() ? *plan.rate_hz * window : messages_until(plan.steps, plan.duration);
  const double requested = plan.count > 0 ? std::min(by_rate, as_double(plan.count)) : by_rate;
  const auto within = [](double value, double expected, double slack) { return std::abs(value - expected) <= slack; };
  const double slack = rate_tolerance * requested + 3;
  const double chance = plan.arrivals == Arrivals::poisson ? 4 * std::sqrt(requested) : 0;

  const double scheduled = as_double(figures.scheduled_in_window);
  const double completed = as_double(figures.completed_in_window);
  std::string rates =
      fmt::format("requested {:.1f}/s, scheduled {:.1f}/s, sent {:.1f}/s, completed {:.1f}/s", requested / window,
                  scheduled / window, as_double(figures.sent_in_window) / window, completed / window);
  const double lost = carries_messages(plan.url) ? as_double(figures.sent_in_window - figures.response.count()) : 0;
  const double wrong = std::min(as_double(figures.wrong_in_window), std::max(0.0, scheduled - completed - lost));
  if (wrong > 0) rates += fmt::format(", answered wrongly {:.1f}/s", wrong / window);
  if (!within(scheduled, requested, slack + chance))
    return {"achieved_rate", false, rates + ": the generator fell behind"};
  const std::string loss = lost > 0 ? fmt::format("loss: {} of the window's messages ({:.3g}%) were never answered; ",
                                                  lost, percent(lost, as_double(figures.sent_in_window)))
                                    : "";
  if (within(completed + wrong + lost, scheduled, slack)) return {"achieved_rate", true, loss + rates};
  if (lacks_sockets(figures))
    return {"achieved_rate", false, loss + rates + ": no connection for the others" + other_error(figures)};
  if (figures.connections.attempted() > figures.connections.established)
    return {"achieved_rate", true, loss + rates + ": no connection for the others (see connections)"};
  if (has_cpu_to_spare(plan, measurement) && figures.own_lag.find_percentile(99) < one_second / 100) {
    if (completed + wrong < scheduled)
      return {"achieved_rate", true, "overload: the server answers slower than the requested rate; " + loss + rates};
    if (completed + wrong <= scheduled + *plan.rate_hz * seconds(plan.warmup) + slack)
      return {"achieved_rate", true, "the server caught up with what was due before the window; " + loss + rates};
  }
  return {"achieved_rate", false, loss + rates};
}

/// The mean of the answers that were still awaited.
double mean_response_s(const Figures& figures) {
  const double count = as_double(figures.response.count() - figures.late_responses);
  const double sum =
      figures.response.mean() * as_double(figures.response.count()) - as_double(figures.late_response_ns);
  return count > 0 ? sum / count / 1e9 : 0;
}

/// Little's law, N = X * R, with figures that come about in different ways. N: messages in the air, integrated over
/// time from their count alone. X * R: the times of the completions within the window, each from its own two stamps.
/// In a closed loop without rounds N is also known beforehand, and the response histogram has to agree.
/// What was given up has no X and no R; it was in the air until then, so that part of N is known from its stamps. So is
/// that of the messages that were under way at either end of the window, or of a slice of it: a few slow ones would
/// weigh more than all others.
Audit little(const LoadPlan& plan, const Measurement& measurement) {
  const Figures& figures = measurement.figures;
  const double window = seconds(plan.duration);
  const double completed = as_double(figures.completed_in_window);
  if (figures.completed_in_window < enough_messages)
    return {"little", true, fmt::format("{} messages are too few to judge", figures.completed_in_window)};
  const double answered = completed - as_double(figures.late_in_window);
  const double rate = answered / window;
  const double service_s = answered > 0 ? as_double(figures.completed_service_ns) / answered / 1e9 : 0;
  const double in_flight = as_double(figures.in_flight_ns) / static_cast<double>(plan.duration);
  const double given_up = as_double(figures.given_up_service_ns) / static_cast<double>(plan.duration);
  const double beyond = static_cast<double>(figures.service_beyond_ns) / static_cast<double>(plan.duration);
  const auto agree = [&](double n, double xr, double tolerance) {
    return std::abs(n - xr) <= tolerance * std::max(n, xr);
  };
  bool holds = agree(in_flight + beyond, rate * service_s + given_up, little_tolerance);
  std::string detail = fmt::format("N {:.4f} in flight and {:.4f} at the ends, X*R {:.4f} ({:.1f}/s * {:.1f} us)",
                                   in_flight, beyond, rate * service_s, rate, service_s * 1e6);
  if (given_up > 0) detail += fmt::format(" and {:.4f} given up", given_up);
  if (plan.arrivals == Arrivals::closed && plan.round == 0) {
    const std::uint64_t standing = std::min<std::uint64_t>(figures.connections.established, plan.connections);
    const std::uint64_t clients = plan.busy_connections > 0
                                      ? std::min<std::uint64_t>(plan.busy_connections, standing)
                                      : standing - std::min<std::uint64_t>(plan.slow_readers, standing);
    const double requested = as_double(clients * plan.depth);
    const double response_s = mean_response_s(figures);
    const double lost = as_double(figures.given_up_response_ns) / static_cast<double>(plan.duration);
    const double response_beyond = static_cast<double>(figures.response_beyond_ns) / static_cast<double>(plan.duration);
    // As many are answered as are meant to be sent, but for those under way at the ends of each slice.
    const double meant = as_double(figures.response.count() - figures.late_responses);
    const double ends = requested * seconds(plan.duration) / seconds(measurement.longest_slice);
    const double xr = (std::abs(meant - answered) <= ends ? meant : answered) / window * response_s;
    holds = holds && agree(requested + response_beyond, xr + lost, little_tolerance);
    detail += fmt::format("; N {} kept in flight and {:.4f} at the ends, X*R {:.4f} (response)", requested,
                          response_beyond, xr);
    if (lost > 0) detail += fmt::format(" and {:.4f} given up", lost);
  }
  detail += fmt::format(", tolerance {:.1f}%", little_tolerance * 100);
  return {"little", holds, detail};
}

Audit generator(const LoadPlan& plan, const Measurement& measurement) {
  const Figures& figures = measurement.figures;
  const bool scheduled = plan.arrivals != Arrivals::closed || plan.round > 0;
  std::string detail =
      fmt::format("{:.2f} of {} cores, busiest thread {:.0f}%", cores_used(plan, measurement),
                  std::min(measurement.cores, measurement.cpu.size()), 100 * busiest_thread(plan, measurement));
  detail += fmt::format(", waited {:.2f} s for a core", run_queue_wait(measurement));
  if (const double spun = spun_s(measurement); spun > 0)
    detail += fmt::format(", {:.2f} cores more for busy waiting", per_second(spun, plan.duration));
  const auto lag = [&](const char* name, const Histogram& histogram) {
    if (histogram.count() == 0) return fmt::format("{} none", name);
    return fmt::format("{} p50 {:.1f} us, p99 {:.1f} us", name, us(histogram, 50), us(histogram, 99));
  };
  if (scheduled) detail += "; " + lag("own send lag", figures.own_lag);
  if (figures.receive_lag.count() > 0) detail += "; " + lag("receive lag", figures.receive_lag);
  if (scheduled && plan.poll_every > 0)
    detail += fmt::format(", {:.1f} us of each as requested", us_of(plan.poll_every));
  if (scheduled || figures.receive_lag.count() > 0) detail += "; beside " + lag("response", figures.response);
  // Where nothing was answered, there is no response time that a lag could be large beside.
  const bool in_time = !scheduled || figures.response.count() == 0 ||
                       (send_lag_is_small(plan, figures) && receive_lag_is_small(plan, figures));
  const std::uint64_t most_threads = std::min<std::uint64_t>(
      measurement.cores, plan.busy_connections > 0 ? plan.busy_connections : plan.connections / plan.share.count);
  if (busiest_thread(plan, measurement) >= most_of_a_core && plan.threads < most_threads)
    detail += fmt::format("; more --threads would help, as it may use {} cores", measurement.cores);
  return {"generator", has_cpu_to_spare(plan, measurement) && in_time, detail};
}

/// What clients can write beside a server is what such a load measures, so the generator's limit is no fault.
Audit generator_of_writes(const LoadPlan& plan, const Measurement& measurement) {
  return {"generator", true,
          fmt::format("not judged, because clients that read nothing are measured: {:.2f} of {} cores",
                      cores_used(plan, measurement), measurement.cores)};
}

}  // namespace

double busiest_thread(const LoadPlan& plan, const Measurement& measurement) {
  double most = 0;
  for (const CpuTime& cpu : measurement.cpu) most = std::max(most, per_second(busy_s(cpu), plan.duration));
  return most;
}

bool at_its_limit(const LoadPlan& plan, const Audit& audit) {
  return !audit.passed && audit.name == "generator" && plan.arrivals == Arrivals::closed && plan.round == 0;
}

bool is_note(const Audit& audit) {
  return audit.passed && std::ranges::any_of(std::initializer_list<const char*>{"overload", "loss", "resent"},
                                             [&](const char* word) { return audit.detail.starts_with(word); });
}

bool believed(const LoadPlan& plan, const std::vector<Audit>& audits) {
  return std::ranges::all_of(audits, [&](const Audit& audit) { return audit.passed || at_its_limit(plan, audit); });
}

std::string list_statuses(const Figures& figures) {
  std::string text;
  for (const auto& [status, count] : figures.statuses)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", status, count);
  return text;
}

std::vector<Audit> audit(const LoadPlan& plan, const Measurement& measurement) {
  if (plan.is_write_only()) return {generator_of_writes(plan, measurement)};
  return {verification(plan, measurement.figures), bytes(measurement.figures), connections(plan, measurement),
          achieved_rate(plan, measurement),        little(plan, measurement),  generator(plan, measurement)};
}

}  // namespace netdyno::load
