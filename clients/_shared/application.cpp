#include "clients/_shared/application.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/cli/whole_file.hpp"
#include "lib/measure/distribution.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/report/result.hpp"
#include "loadgen/run.hpp"

namespace netdyno::client {
namespace {

using load::never;
using load::now_ns;
using Json = nlohmann::ordered_json;

constexpr Nanos progress_interval = load::one_second / 2;

Json client_json(const Journal& journal, const Histogram& tick_lag) {
  Json json;
  for (std::size_t i = 0; i < failure_names.size(); ++i)
    json[failure_names[i]] = journal.failures(static_cast<Failure>(i));
  json["recovered"] = journal.recovered();
  json["tick_lag_ns"] = distribution(tick_lag);
  return json;
}

load::Audit window_audit(const ClientPlan& plan, bool whole) {
  return {"window", whole,
          whole ? fmt::format("{:g} s, as requested", load::seconds(plan.load.duration))
                : "a signal ended the run before the end of the window"};
}

/// The generator's checks. One is no check here: a generator must not be what limits, but a client is what is measured.
std::vector<load::Audit> audits_of(const ClientPlan& plan, const Journal& journal, const load::Measurement& measured) {
  std::vector<load::Audit> audits = load::audit(plan.load, measured);
  for (load::Audit& audit : audits)
    if (audit.name == "generator") audit = {audit.name, true, "the client is what is measured: " + audit.detail};
  audits.push_back(window_audit(plan, journal.reached_the_end()));
  return audits;
}

/// "response_timeout 3, recovered 2"; "none".
std::string failures_text(const Journal& journal) {
  std::string text;
  const auto add = [&](const char* name, std::uint64_t count) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  };
  for (std::size_t i = 0; i < failure_names.size(); ++i)
    add(failure_names[i], journal.failures(static_cast<Failure>(i)));
  add("recovered", journal.recovered());
  return text.empty() ? "none" : text;
}

std::string client_summary(const Journal& journal, const Histogram& tick_lag) {
  const std::string failures = fmt::format("failures      {}\n", failures_text(journal));
  if (tick_lag.count() == 0) return failures + "tick lag      none\n";
  const auto ms = [&](double percentile) { return static_cast<double>(tick_lag.find_percentile(percentile)) / 1e6; };
  return failures + fmt::format("tick lag      p50 {:.3f} ms, p99 {:.3f} ms, max {:.3f} ms\n", ms(50), ms(99), ms(100));
}

}  // namespace

Application::Application(const ClientPlan& plan, Journal& journal)
    : plan_(plan), journal_(journal), display_(plan.load), ticks_(now_ns()) {}

Nanos Application::due() const { return std::min({ticks_.due(), boundary_, progress_}); }

void Application::wake() {
  const Nanos now = now_ns();
  ticks_.record(now);
  while (now >= boundary_) cross_boundary();
  if (now >= progress_) {
    display_.on_progress({journal_.completed(), journal_.answered(), progress_ - window_.start},
                         journal_.timeline().latest());
    progress_ += progress_interval;
    if (progress_ >= window_.end) progress_ = never;
  }
}

void Application::connected(std::uint64_t established) { display_.on_connected(established); }

void Application::begin(const load::Window& window) {
  window_ = window;
  boundary_ = window.start;
}

void Application::cross_boundary() {
  if (boundary_ == window_.start) {
    display_.on_window_start();
    cpu_at_start_ = load::process_cpu();
    boundary_ = window_.end;
    if (window_.start + progress_interval < window_.end) progress_ = window_.start + progress_interval;
  } else {
    display_.on_window_end();
    cpu_ = cpu_since_start();
    boundary_ = never;
    progress_ = never;
  }
}

load::CpuTime Application::cpu_since_start() const {
  const load::CpuTime cpu = load::process_cpu();
  return {cpu.user_s - cpu_at_start_.user_s, cpu.system_s - cpu_at_start_.system_s, 0};
}

int Application::finish() {
  wake();
  if (boundary_ != never && boundary_ == window_.end) cpu_ = cpu_since_start();  // a signal came within the window
  display_.on_finished();
  journal_.finish();
  load::Measurement measured;
  measured.figures.add(journal_.figures());
  measured.cpu.push_back(cpu_);
  measured.timeline = journal_.timeline().slots();
  measured.began = window_.start == never ? 0 : window_.start;
  measured.interval = journal_.timeline().interval();
  measured.max_rss_bytes = load::peak_rss_bytes();
  measured.cores = load::usable_cores().size();

  const auto audits = audits_of(plan_, journal_, measured);
  Json json = load::to_json(plan_.load, measured, audits);
  json["client"] = client_json(journal_, ticks_.lag());
  const std::string text = json.dump() + "\n";
  const std::string& file = plan_.load.json_file;
  const int error = file.empty() ? 0 : try_write_whole(file, text);
  if (file != "-")
    write_whole("-", load::summary(plan_.load, measured, audits) + client_summary(journal_, ticks_.lag()));
  if (error != 0) die(describe_unwritten(file, error));

  if (measured.figures.messages.received > 0) return 0;
  std::fprintf(stderr, "%s: no valid answer from %s; failures: %s\n", program_invocation_short_name,
               format_url(plan_.load.url).c_str(), failures_text(journal_).c_str());
  return 1;
}

}  // namespace netdyno::client
