#pragma once

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// accept(2) and what its errno means for the accept loop: errno is sorted here, once.
enum class AcceptStatus {
  accepted,
  try_again,     // nothing there now, a signal came, or the peer left before it was accepted
  exhausted,     // no descriptors or memory: pause, the queue is still full
  not_listening  // the listener was shut down
};
struct Accepted {
  AcceptStatus status;
  UniqueFd fd;
};
Accepted accept_one(int listener, bool nonblocking);

}  // namespace netdyno
