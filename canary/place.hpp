#pragma once

#include <vector>

namespace netdyno::canary {

/// Binds this process to these cores, or leaves it where it is when there are none. Dies with a hint.
void run_on(const std::vector<int>& cores);

/// Puts this process before everything of normal priority on its cores (SCHED_FIFO, sched(7)); 0 leaves it as it is.
/// Dies with a hint.
void run_before_others(int priority);

}  // namespace netdyno::canary
