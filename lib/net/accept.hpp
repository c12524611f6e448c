#pragma once

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// The outcome of an accept(2), for the accept loop.
enum class AcceptStatus {
  accepted,
  try_again,     // nothing there now, a signal came, or the peer left before it was accepted
  exhausted,     // no descriptors or memory: pause, the queue is still full
  not_listening  // the listener was shut down
};

/// Returns what its errno means: errno is sorted here, once.
AcceptStatus accept_status(int error);

struct Accepted {
  AcceptStatus status;
  UniqueFd fd;
};
/// Accepts the next connection that waits.
Accepted accept_next(int listener, bool nonblocking);

}  // namespace netdyno
