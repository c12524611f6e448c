#pragma once

#include <chrono>
#include <vector>

namespace netdyno::canary {

/// The options of the command line.
struct CanaryPlan {
  std::vector<int> server_cores;     // of the side that answers; none: wherever it is put
  std::vector<int> generator_cores;  // of the side that asks
  int realtime = 0;                  // the asking side's priority under SCHED_FIFO (sched(7)); 0: a normal one
  std::chrono::nanoseconds exchange = std::chrono::milliseconds{20};
  std::chrono::nanoseconds loop = std::chrono::milliseconds{10};
};

/// Ends the program on `--help` (exit 0) and on what cannot be meant (exit 2, one clear line on stderr).
CanaryPlan parse_plan(int argc, const char* const* argv);

}  // namespace netdyno::canary
