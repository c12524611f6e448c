#include "canary/plan.hpp"

#include <string>

#include "lib/cli/option_values.hpp"
#include "lib/measure/process.hpp"

namespace netdyno::canary {
namespace {

constexpr const char* description =
    R"(netdyno-canary: a short fixed workload that says how fast this machine is right now.

Two processes send each other 64 bytes over a TCP connection of the loopback, then both count at the same time, then
they send again, on one core. One line of JSON says how fast that went. README.md says what the figures are.

Example: netdyno-canary --server-cores 0 --generator-cores 1
)";

constexpr std::chrono::seconds longest{10};

void check(const std::string& program, const char* name, std::chrono::nanoseconds value) {
  if (value.count() <= 0 || value > longest)
    usage_error(program, std::string{name} + ": want more than 0, at most 10s");
}

}  // namespace

CanaryPlan parse_plan(int argc, const char* const* argv) {
  CanaryPlan plan;
  CommandLine line{description, argv[0]};
  const std::string& program = line.program();
  const auto add_cores = [&line](const char* name, std::vector<int>& cores, const char* help) {
    line.add_numbers(name, cores, 0, load::core_numbers - 1, help).type_name("N[,N…]");
  };
  add_cores("--server-cores", plan.server_cores, "cores of the process that answers (default: any)");
  add_cores("--generator-cores", plan.generator_cores, "cores of the process that asks (default: any)");
  line.add_number("--realtime", plan.realtime, 1, 99,
                  "priority of the process that asks under SCHED_FIFO (default: none)")
      .type_name("PRIORITY");
  add_duration(line, "--exchange", plan.exchange,
               "how long messages are exchanged, and a quarter of it on one core (default 20ms, at most 10s)");
  add_duration(line, "--loop", plan.loop, "how long both count (default 10ms, at most 10s)");
  line.add_version("netdyno-canary " NETDYNO_VERSION);
  line.parse(argc, argv);
  check(program, "--exchange", plan.exchange);
  check(program, "--loop", plan.loop);
  if (plan.server_cores.empty() != plan.generator_cores.empty())
    usage_error(program, "--server-cores and --generator-cores: want both or neither");
  return plan;
}

}  // namespace netdyno::canary
