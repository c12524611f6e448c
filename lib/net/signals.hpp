#pragma once

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// Blocks SIGTERM and SIGINT in this thread and all that it starts, ignores SIGPIPE, and returns a signalfd(2) that
/// becomes readable when SIGTERM or SIGINT arrives. Call it before any thread starts.
UniqueFd termination_signals();

}  // namespace netdyno
