#pragma once

#include <new>

#include "lib/session/counters.hpp"

namespace netdyno {

/// Calls `serve`. False where there is no memory for it: that client is to be closed, and the others go on.
template <typename Serve>
bool has_memory_for(Counters& counters, Serve&& serve) {
  try {
    serve();
    return true;
  } catch (const std::bad_alloc&) {
    counters.add_memory_closed();
    return false;
  }
}

}  // namespace netdyno
