#pragma once

#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// State shared by all actors. Any thread.
struct Shared {
  const ServerOptions& options;
  Counters counters = {};
};

}  // namespace netdyno
