#include "loadgen/report/exports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "lib/measure/distribution.hpp"

namespace netdyno::load {
namespace {

double asserted_errors(const Figures& figures) { return value_of(*parse_assertion("errors=0"), figures, 1); }

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();  // Prometheus' own word for it

std::string times(const Histogram& histogram) {
  if (histogram.count() == 0) return std::string(percentiles.size(), ',');
  std::string text = fmt::format("{:.1f}", histogram.mean());
  for (const Percentile& p : percentiles) text += fmt::format(",{}", histogram.find_percentile(p.percent));
  return text;
}

/// Empty where no time has passed.
std::string rate(std::uint64_t count, Nanos lasted) {
  return lasted > 0 ? fmt::format("{}", per_second(static_cast<double>(count), lasted)) : "";
}

std::string known(std::optional<std::int64_t> ns) { return ns ? fmt::format("{}", *ns) : ""; }

std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

/// A metric with its samples, each a set of labels and a value.
class Metrics {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("netdyno_load_{}", name);
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  void sample(std::string_view labels, double value, std::string_view suffix = "") {
    const std::string text = std::isnan(value) ? "NaN" : fmt::format("{}", value);
    text_ += fmt::format("{}{}{} {}\n", name_, suffix, labels.empty() ? "" : fmt::format("{{{}}}", labels), text);
  }
  void add_gauge(std::string_view name, std::string_view help, double value) {
    begin(name, "gauge", help);
    sample("", value);
  }
  void add_summary(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(name, "summary", help);
    for (const Percentile& p : percentiles)
      sample(fmt::format("quantile=\"{:g}\"", p.percent / 100),
             histogram.count() > 0 ? static_cast<double>(histogram.find_percentile(p.percent)) / 1e9 : no_value);
    const auto count = static_cast<double>(histogram.count());
    sample("", histogram.mean() * count / 1e9, "_sum");
    sample("", count, "_count");
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void add_counts(Metrics& metrics, const Figures& f) {
  using Count = std::pair<const char*, std::uint64_t>;
  const auto add = [&](const char* name, const char* help, const char* key, std::initializer_list<Count> counts) {
    metrics.begin(name, "gauge", help);
    for (const auto& [value, count] : counts)
      metrics.sample(fmt::format("{}=\"{}\"", key, value), static_cast<double>(count));
  };
  const MessageCounts& m = f.messages;
  add("messages", "Messages over the whole life, by what became of them.", "what",
      {{"due", m.due},
       {"sent", m.sent},
       {"unsent", m.unsent()},
       {"received", m.received},
       {"duplicated", m.duplicated},
       {"reordered", m.reordered},
       {"corrupt", m.corrupt},
       {"unexpected", m.unexpected},
       {"late", m.late}});
  add("connections", "Connections over the whole life, by what became of them.", "what",
      {{"established", f.connections.established},
       {"refused", f.connections.refused},
       {"timed_out", f.connections.timed_out},
       {"reset", f.connections.reset},
       {"other", f.connections.other}});
  add("errors", "Messages without an answer in time, and connections that ended early.", "kind",
      {{"timeout", f.errors.timeout},
       {"closed_by_server", f.errors.closed_by_server},
       {"reset", f.errors.reset},
       {"protocol", f.errors.protocol}});
}

}  // namespace

std::string to_csv(const LoadPlan& plan, const Measurement& measurement) {
  const Figures& f = measurement.figures;
  std::string text = "part,begins_s,seconds,from_hz,to_hz,sent,completed,per_second,errors,mean_ns";
  for (const Percentile& p : percentiles) text += fmt::format(",{}_ns", p.key);
  text += '\n';
  const Nanos window = plan.duration;
  const std::string rates = plan.rate_hz ? fmt::format("{},{}", *plan.rate_hz, *plan.rate_hz) : ",";
  text +=
      fmt::format("window,0,{},{},{},{},{},{},{}\n", seconds(window), rates, f.sent_in_window, f.completed_in_window,
                  rate(f.completed_in_window, window), asserted_errors(f), times(f.response));
  Nanos begins = 0;
  for (std::size_t i = 0; i < f.steps.size(); ++i) {
    const RateStep& step = plan.steps[i];
    const StepFigures& sums = f.steps[i];
    const Nanos lasted = std::clamp<Nanos>(window - begins, 0, step.length);
    text += fmt::format("step,{},{},{},{},{},{},{},{},{}\n", seconds(begins), seconds(lasted), step.from_hz, step.to_hz,
                        sums.sent, sums.completed, rate(sums.completed, lasted), sums.errors, times(sums.response));
    begins += step.length;
  }
  begins = 0;
  for (const Timeline::Slot& slot : measurement.timeline) {
    const Nanos lasted = std::min(measurement.interval, window - begins);
    text += fmt::format("interval,{},{},,,,{},{},{},", seconds(begins), seconds(lasted), slot.completed,
                        rate(slot.completed, lasted), slot.errors);
    for (const Percentile& p : percentiles)
      text += ',' + known(p.percent == 50 ? slot.p50_ns : p.percent == 99 ? slot.p99_ns : std::nullopt);
    text += '\n';
    begins += measurement.interval;
  }
  return text;
}

std::string to_prometheus(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  const Figures& f = measurement.figures;
  const double window = seconds(plan.duration);
  Metrics metrics;
  metrics.begin("info", "gauge", "What was loaded; always 1.");
  metrics.sample(fmt::format("url=\"{}\",workload=\"{}\",arrivals=\"{}\",connections=\"{}\"", label(address_of(plan)),
                             netdyno::to_string(plan.workload), to_string(plan.arrivals), plan.connections),
                 1);
  metrics.add_gauge("window_seconds", "The measured window.", window);
  if (plan.rate_hz) metrics.add_gauge("asked_per_second", "Requested messages a second.", *plan.rate_hz);
  metrics.add_gauge("completed_per_second", "Answers within the window, over the window.",
                    window > 0 ? per_second(static_cast<double>(f.completed_in_window), plan.duration) : no_value);
  metrics.add_summary("response_seconds", "From the moment a message was meant to be sent to its answer.", f.response);
  metrics.add_summary("service_seconds", "From the moment a message was sent to its answer.", f.service);
  Histogram send_lag = f.own_lag;
  send_lag.add(f.blocked_lag);
  metrics.add_summary("send_lag_seconds", "How late messages were sent.", send_lag);
  metrics.add_summary("receive_lag_seconds", "How long answers were in the kernel, of a sample.", f.receive_lag);
  add_counts(metrics, f);
  double cpu_s = 0;
  for (const CpuTime& cpu : measurement.cpu) cpu_s += cpu.user_s + cpu.system_s;
  metrics.add_gauge("cpu_seconds", "CPU of the generator in the window.", cpu_s);
  metrics.begin("audit_passed", "gauge", "Whether an audit of the figures passed.");
  for (const Audit& audit : audits) metrics.sample(fmt::format("audit=\"{}\"", audit.name), audit.passed ? 1 : 0);
  return std::move(metrics).text();
}

/// Five steps to each halving of what is left, as HdrHistogram has them.
std::string to_percentiles(const Measurement& measurement) {
  constexpr int ticks = 5;
  const Histogram& response = measurement.figures.response;
  const auto count = static_cast<double>(response.count());
  std::string text =
      fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  for (double left = 1; response.count() > 0 && left * count >= 1; left /= 2) {
    for (int tick = 0; tick < ticks; ++tick) {
      const double share = 1 - left + left / 2 * tick / ticks;
      const std::int64_t value = response.find_percentile(100 * share);
      text += fmt::format("{:>12.3f} {:>14.12f} {:>10} {:>14.2f}\n", static_cast<double>(value) / 1e3, share,
                          response.count_up_to(value), 1 / (1 - share));
    }
  }
  if (response.count() > 0)
    text +=
        fmt::format("{:>12.3f} {:>14.12f} {:>10}\n", static_cast<double>(response.max()) / 1e3, 1.0, response.count());
  const double mean = response.count() > 0 ? response.mean() / 1e3 : no_value;
  const double max = response.count() > 0 ? static_cast<double>(response.max()) / 1e3 : no_value;
  return text + fmt::format("#[Mean    = {:>12.3f}]\n#[Max     = {:>12.3f}, Total count    = {:>12}]\n", mean, max,
                            response.count());
}

}  // namespace netdyno::load
