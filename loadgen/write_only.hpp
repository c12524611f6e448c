#pragma once

#include "loadgen/run.hpp"

namespace netdyno::load {

/// The load of --messages: clients that write and never read; what arrives is taken off the socket, as an event loop
/// does, until that is more than 128 KiB, and thrown away. All connect at once; each waits 20 ms, writes its messages,
/// each some time after the one before, waits that time again and leaves. A connect or a write that fails, or a
/// connection that is reset, ends that client alone. The window lasts from the burst until the last one has left.
Measurement run_write_only(const LoadPlan& plan, Observer& observer);

}  // namespace netdyno::load
