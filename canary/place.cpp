#include "canary/place.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lib/cli/die.hpp"
#include "lib/measure/process.hpp"

namespace netdyno::canary {

void run_on(const std::vector<int>& cores) {
  if (cores.empty()) return;
  if (!load::bind_to_cores(cores))
    die(std::string{"cannot run on the requested cores: "} + std::strerror(errno) +
        "; taskset -p $$ shows those allowed");
}

void run_before_others(int priority) {
  if (priority == 0) return;
  const sched_param parameters{.sched_priority = priority};
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
    die(std::string{"cannot have real-time priority: "} + std::strerror(errno) +
        "; leave out --realtime, or raise ulimit -r");
}

}  // namespace netdyno::canary
