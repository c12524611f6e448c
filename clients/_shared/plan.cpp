#include "clients/_shared/plan.hpp"

#include <chrono>
#include <utility>

#include "lib/cli/option_values.hpp"

namespace netdyno::client {
namespace {

load::LoadPlan defaults() {
  load::LoadPlan plan;
  plan.workload = Workload::rpc;
  plan.timeout = 5 * load::one_second;  // as in source A
  return plan;
}

}  // namespace

Options library_options(const ClientPlan& plan) {
  const std::chrono::nanoseconds connect{plan.load.connect_timeout};
  const std::chrono::nanoseconds answer{plan.load.timeout};
  return {.limits = {.resolve = connect, .connect = connect, .write = answer, .answer = answer},
          .nodelay = plan.load.nodelay,
          .split_writes = plan.load.write_mode == WriteMode::split};
}

ClientPlan parse_client_plan(int argc, const char* const* argv) {
  std::chrono::nanoseconds retry_delay = std::chrono::milliseconds{100};
  const load::PlanSubset subset{
      .description = "netdyno client contestant: a closed loop of requests (protocol/client.md)",
      .defaults = defaults(),
      .options = {"--workload", "--connections", "--size", "--duration", "--warmup", "--timeout", "--connect-timeout",
                  "--linger", "--service-time", "--nodelay", "--write-mode", "--share", "--await-go", "--seed",
                  "--json", "--events-fd"},
      .workloads = {Workload::rpc},
      .add_own = [&](CommandLine& line) {
        add_duration(line, "--retry-delay", retry_delay, "from a failure to the next attempt (default 100ms)");
      }};
  load::LoadPlan plan = load::parse_load_plan(argc, argv, subset);
  const auto [index, count] = plan.share;
  plan.connections = plan.connections / count + (index < plan.connections % count ? 1 : 0);
  return {std::move(plan), retry_delay.count()};
}

}  // namespace netdyno::client
