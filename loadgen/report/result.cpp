#include "loadgen/report/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/measure/distribution.hpp"

namespace netdyno::load {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_bodies = 100;

Histogram send_lag(const Figures& figures) {
  Histogram both = figures.own_lag;
  both.add(figures.blocked_lag);
  return both;
}

/// The user's own requests have whatever size they have.
bool has_size(const LoadPlan& plan) { return !plan.is_foreign() || (plan.http && plan.http->check == Check::echo); }

Json plan_json(const LoadPlan& plan) {
  return {{"url", address_of(plan)},
          {"workload", netdyno::to_string(plan.workload)},
          {"arrivals", to_string(plan.arrivals)},
          {"depth", plan.depth},
          {"rate_hz", plan.rate_hz ? Json(*plan.rate_hz) : Json(nullptr)},
          {"connections", plan.connections},
          {"size", has_size(plan) ? plan.size : 0},
          {"threads", plan.threads},
          {"audience", plan.audience == Audience::all ? "all" : "others"},
          {"seed", plan.seed},
          {"warmup_s", seconds(plan.warmup)},
          {"duration_s", seconds(plan.duration)},
          {"timeout_s", seconds(plan.timeout)},
          {"round_s", seconds(plan.round)},
          {"look_every_s", seconds(plan.poll_every)},
          {"write_due", to_string(plan.write_due)},
          {"spin", to_string(plan.spin)},
          {"most_in_flight", plan.flight_is_limited || !plan.rate_hz ? Json(plan.depth) : Json(nullptr)},
          {"count", plan.count > 0 ? Json(plan.count) : Json(nullptr)},
          {"send_buffer", plan.send_buffer},
          {"requests_per_connection",
           plan.requests_per_connection > 0 ? Json(plan.requests_per_connection) : Json(nullptr)},
          {"reconnects", plan.reconnects},
          {"slow_readers", plan.slow_readers},
          {"busy_connections", plan.busy_connections > 0 ? Json(plan.busy_connections) : Json(nullptr)},
          {"start", plan.speaks_at_once ? "at-once" : "together"}};
}

Json connections_json(const Figures& figures) {
  const ConnectCounts& c = figures.connections;
  return {{"attempted", c.attempted()},
          {"established", c.established},
          {"refused", c.refused},
          {"timed_out", c.timed_out},
          {"reset", c.reset},
          {"other", c.other},
          {"in_window", figures.connected_in_window},
          {"closed_after_reply", c.closed_after_reply}};
}

Json messages_json(const MessageCounts& m) {
  return {{"sent", m.sent},
          {"expected", m.expected},
          {"received", m.received},
          {"lost", m.lost()},
          {"duplicated", m.duplicated},
          {"reordered", m.reordered},
          {"corrupt", m.corrupt},
          {"late", m.late},
          {"due", m.due},
          {"unsent", m.unsent()}};
}

/// Only where connections are encrypted.
Json tls_json(const LoadPlan& plan, const Handshakes& handshakes) {
  return {{"verified", !plan.tls.insecure},  {"reuse", plan.tls.reuse},
          {"protocol", handshakes.protocol}, {"cipher", handshakes.cipher},
          {"resumed", handshakes.resumed},   {"handshake_ns", distribution(handshakes.times)}};
}

const char* name_of(Population population) {
  switch (population) {
    case Population::messages:
      return "messages";
    case Population::replies:
      return "replies";
    case Population::connects:
      return "connects";
    case Population::connections:
      break;
  }
  return "connections";
}

/// Only of foreign servers, of grpc, and over TLS or WebSocket.
Json replies_json(const LoadPlan& plan, const Figures& figures) {
  Json statuses = Json::object(), faults = Json::array();
  for (const auto& [status, count] : figures.statuses) statuses[std::to_string(status)] = count;
  for (const auto& kind : figures.faults.kinds)
    faults.push_back({{"what", kind.what}, {"count", kind.count}, {"of", name_of(kind.population)}});
  Json bodies = Json::object();
  for (const auto& [target, body] : plan.http ? plan.http->first_bodies->all() : FirstBodies::Bodies{}) {
    if (bodies.size() == most_bodies) break;
    bodies[target] = plan.http->check == Check::hash ? fmt::format("{} {:016x}", body.length, body.digest)
                                                     : fmt::format("{}", body.length);
  }
  return {{"unexpected", figures.messages.unexpected},
          {"resent", figures.messages.resent},
          {"statuses", statuses},
          {"bodies", bodies},
          {"faults", faults},
          {"other_faults", figures.faults.count_of_others()}};
}

/// The part of a step within the window, which may have been cut short.
Nanos step_length(const LoadPlan& plan, const RateStep& step, Nanos begins) {
  return std::clamp<Nanos>(plan.duration - begins, 0, step.length);
}

Json steps_json(const LoadPlan& plan, const Figures& figures) {
  Json list = Json::array();
  Nanos begins = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const RateStep& step = plan.steps[i];
    const StepFigures& sums = figures.steps.at(i);
    const Nanos lasted = step_length(plan, step, begins);
    list.push_back({{"from_hz", step.from_hz},
                    {"to_hz", step.to_hz},
                    {"begins_s", seconds(begins)},
                    {"seconds", seconds(lasted)},
                    {"sent", sums.sent},
                    {"completed", sums.completed},
                    {"per_second", per_second(static_cast<double>(sums.completed), lasted)},
                    {"late", sums.late},
                    {"errors", sums.errors},
                    {"response_ns", distribution(sums.response)}});
    begins += step.length;
  }
  return list;
}

Json generator_json(const LoadPlan& plan, const Measurement& measurement) {
  CpuTime sum;
  Json threads = Json::array();
  for (const CpuTime& cpu : measurement.cpu) {
    sum.user_s += cpu.user_s;
    sum.system_s += cpu.system_s;
    sum.spun_s += cpu.spun_s;
    threads.push_back({{"cpu_user_s", cpu.user_s}, {"cpu_system_s", cpu.system_s}, {"spun_s", cpu.spun_s}});
  }
  return {{"cpu_user_s", sum.user_s},
          {"cpu_system_s", sum.system_s},
          {"spun_s", sum.spun_s},
          {"cores_used", per_second(sum.user_s + sum.system_s, plan.duration)},
          {"cores", measurement.cores},
          {"busiest", busiest_thread(plan, measurement)},
          {"max_rss_bytes", measurement.max_rss_bytes},
          {"threads", threads},
          {"socket_drops", measurement.figures.socket_drops}};
}

Json timeline_json(const LoadPlan& plan, Nanos interval, const std::vector<Timeline::Slot>& slots) {
  const auto known = [](std::optional<std::int64_t> ns) { return ns ? Json(*ns) : Json(nullptr); };
  Json completed = Json::array(), p50 = Json::array(), p99 = Json::array(), errors = Json::array();
  for (const Timeline::Slot& slot : slots) {
    completed.push_back(slot.completed);
    p50.push_back(known(slot.p50_ns));
    p99.push_back(known(slot.p99_ns));
    errors.push_back(slot.errors);
  }
  Json json{{"interval_ns", interval}, {"completed", completed}, {"p50_ns", p50}, {"p99_ns", p99}, {"errors", errors}};
  if (plan.share.count > 1)
    for (const Timeline::Slot& slot : slots) json["histograms"].push_back(slot.histogram);
  return json;
}

/// Only of clients that write and never read.
Json write_only_json(const LoadPlan& plan, const Measurement& measurement) {
  return {{"messages_each", plan.messages_each},
          {"every_s", seconds(plan.every)},
          {"finished", measurement.finished},
          {"failed", measurement.figures.errors.reset},
          {"per_second", written_per_second(plan, measurement)}};
}

/// Only of streams.
Json chunks_json(const LoadPlan& plan, const Figures& figures) {
  return {{"per_stream", plan.chunks},
          {"every_s", seconds(plan.every)},
          {"completed", figures.chunks_in_window},
          {"early", figures.early_chunks},
          {"late_ns", distribution(figures.chunk_lag)}};
}

Json audits_json(const std::vector<Audit>& audits) {
  Json list = Json::array();
  for (const Audit& check : audits)
    list.push_back({{"name", check.name}, {"passed", check.passed}, {"detail", check.detail}});
  return list;
}

}  // namespace

double written_per_second(const LoadPlan& plan, const Measurement& measurement) {
  return per_second(static_cast<double>(measurement.finished * plan.messages_each), measurement.duration);
}

Json to_json(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  const Figures& figures = measurement.figures;
  Json json{
      {"version", 1},
      {"plan", plan_json(plan)},
      {"began_ns", measurement.began},
      {"requests",
       {{"sent", figures.sent_in_window},
        {"completed", figures.completed_in_window},
        {"per_second", per_second(static_cast<double>(figures.completed_in_window), plan.duration)},
        {"due", figures.scheduled_in_window}}},
      {"latency",
       {{"clock", figures.all_timed_by_kernel() ? "kernel" : "generator"},
        {"response_ns", distribution(figures.response)},
        {"service_ns", distribution(figures.service)}}},
      {"send_lag_ns", distribution(send_lag(figures))},
      {"receive_lag_ns", distribution(figures.receive_lag)},
      {"connections", connections_json(figures)},
      {"connect_ns", distribution(figures.connect)},
      {"connection_mean_ns", distribution(figures.connection)},
      {"messages", messages_json(figures.messages)},
      {"bytes",
       {{"sent", figures.bytes.sent}, {"received", figures.bytes.received}, {"expected", figures.bytes.expected}}},
      {"generator", generator_json(plan, measurement)},
      {"errors",
       {{"timeout", figures.errors.timeout},
        {"closed_by_server", figures.errors.closed_by_server},
        {"reset", figures.errors.reset},
        {"protocol", figures.errors.protocol}}},
      {"timeseries", timeline_json(plan, measurement.interval, measurement.timeline)},
      {"audits", audits_json(audits)}};
  if (figures.messages.received == 0)
    json["first_exchange"] = {{"sent", escape(figures.first_exchange.sent)},
                              {"received", escape(figures.first_exchange.received)}};
  if (plan.is_write_only()) json["write_only"] = write_only_json(plan, measurement);
  if (plan.chunks > 0) json["chunks"] = chunks_json(plan, figures);
  if (!figures.steps.empty()) json["steps"] = steps_json(plan, figures);
  const bool has_words = plan.is_foreign() || plan.tls.on || plan.websocket || plan.workload == Workload::grpc;
  if (has_words) json["replies"] = replies_json(plan, figures);
  if (plan.tls.on) json["tls"] = tls_json(plan, figures.handshakes);
  return json;
}

std::string to_json_line(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits) {
  // What a server said may be no UTF-8, or have an effect on a terminal.
  return to_json(plan, measurement, audits).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string to_hdr_log(const LoadPlan& plan, const Measurement& measurement) {
  std::string log = fmt::format(
      "#[Histogram log format version 1.3]\n#[netdyno-load {}, values in nanoseconds]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      address_of(plan));
  const auto line = [&](const char* tag, const Histogram& histogram) {
    log += fmt::format("Tag={},{:.3f},{:.3f},{},{}\n", tag, seconds(plan.warmup), seconds(plan.duration),
                       histogram.max(), histogram.encode());
  };
  line("response_ns", measurement.figures.response);
  line("service_ns", measurement.figures.service);
  line("send_lag_ns", send_lag(measurement.figures));
  line("receive_lag_ns", measurement.figures.receive_lag);
  return log;
}

}  // namespace netdyno::load
