#pragma once

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// Blocks SIGTERM and SIGINT in this thread and all that it starts, ignores SIGPIPE, and returns a signalfd(2) that
/// becomes readable when the program is told to end. Call it before any thread starts.
UniqueFd termination_signals();

}  // namespace netdyno
