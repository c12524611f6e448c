// netdyno-link: a TAP device in each of two network namespaces, and a line between them. README.md says what it is for.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/cli/die.hpp"
#include "lib/net/signals.hpp"
#include "link/plan.hpp"
#include "link/relay.hpp"
#include "link/tap.hpp"

namespace {

void print_line(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

/// Keeps in memory what is there by now: a kernel that takes back pages that were not used for a moment (DAMON)
/// makes a frame wait for milliseconds. Where it is not allowed (RLIMIT_MEMLOCK), the line of totals shows what that
/// costs. Not what comes later (MCL_FUTURE): beyond the limit that could not be had at all.
void keep_memory() { [[maybe_unused]] const int refused = mlockall(MCL_CURRENT | MCL_ONFAULT); }

}  // namespace

int main(int argc, char** argv) {
  using namespace netdyno;
  using namespace netdyno::link;
  const LinkPlan plan = parse_plan(argc, argv);
  const UniqueFd stop_signal = termination_signals();
  // Both are opened before one is entered: the name of the second may mean something else in there.
  const UniqueFd at_a = open_namespace(plan.namespaces[0]);
  const UniqueFd at_b = open_namespace(plan.namespaces[1]);
  enter(at_a, plan.namespaces[0]);
  const Tap a{plan.interface};
  enter(at_b, plan.namespaces[1]);
  const Tap b{plan.interface};

  Relay relay{plan.terms, a, b, stop_signal.get()};
  keep_memory();
  print_line({{"ready", true}, {"interface", plan.interface}, {"pid", getpid()}});
  relay.run();
  print_line(relay.totals());
  return 0;
}
