#pragma once

#include <span>

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// The signals that ask a program to end: SIGINT, SIGTERM, and SIGHUP where it is not ignored (nohup(1)). It allocates
/// nothing, as handlers of signals call it (signal-safety(7)).
std::span<const int> ending_signals();

/// Gives them their default action, and the same as process 1 of a container, to which the kernel delivers no signal
/// without a handler (pid_namespaces(7)).
void end_at_signals();

/// Blocks the ending signals in this thread and all that it starts, ignores SIGPIPE, and returns a signalfd(2) that
/// becomes readable when one of them arrives. Call it before any thread starts.
UniqueFd termination_signals();

}  // namespace netdyno
