#pragma once

#include <caf/error.hpp>
#include <caf/sec.hpp>
#include <exception>
#include <new>

#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// State shared by all actors. Any thread.
struct Shared {
  const ServerOptions& options;
  Counters counters = {};
};

/// For set_exception_handler(): an actor without memory ends, and with it the actor that is linked to it: one client.
inline auto close_without_memory(Counters& counters) {
  return [&counters](const std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      counters.add_memory_closed();
      return caf::sec::runtime_error;
    }
  };
}

}  // namespace netdyno
