// netdyno-canary: how fast this machine is right now, by a short workload that is always the same. README.md says more.
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "canary/place.hpp"
#include "canary/plan.hpp"
#include "canary/slices.hpp"
#include "canary/workload.hpp"
#include "lib/cli/die.hpp"

namespace {

using namespace netdyno;
using namespace netdyno::canary;

/// The other process, where the server of a trial would be.
[[noreturn]] void run_server(const UniqueFd& answering, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it had ended before the call
  answer(answering.get());
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const CanaryPlan plan = parse_plan(argc, argv);
  const Clock::time_point begun = Clock::now();
  auto [asking, answering] = make_connected_pair();
  run_on(plan.server_cores);      // the other process inherits them, so that whatever cannot be had is said here
  std::signal(SIGCHLD, SIG_IGN);  // waitpid(2): it is reaped as it ends, and not by this one at its priority
  const pid_t here = getpid();
  const pid_t child = fork();
  if (child < 0) die("cannot start a second process; raise ulimit -u");
  if (child == 0) {
    asking.reset();
    run_server(answering, here);
  }
  answering.reset();
  run_on(plan.generator_cores);
  run_before_others(plan.realtime);

  const double there_and_back = measure_round_trips(asking.get(), plan.exchange);
  const auto [server, generator] = count_together(asking.get(), plan.loop);
  const int server_core = plan.server_cores.empty() ? sched_getcpu() : plan.server_cores.front();
  const double on_one_core = measure_round_trips_on_one_core(asking.get(), server_core, plan.exchange / 4);
  asking.reset();  // which ends the other process
  fmt::print(R"({{"round_trips_per_second":{},"server_millions_per_second":{},"generator_millions_per_second":{},)"
             R"("one_core_round_trips_per_second":{},"seconds":{}}})"
             "\n",
             there_and_back, server, generator, on_one_core,
             std::chrono::duration<double>(Clock::now() - begun).count());
  waitpid(child, nullptr, 0);  // until it has ended: an orphan would be left to an init that may never reap it
  return 0;
}
