#pragma once

#include <chrono>
#include <cstddef>

#include "lib/protocol/workload.hpp"

namespace netdyno {

/// The options of the work of a session.
struct SessionOptions {
  Workload workload = Workload::echo;
  std::size_t max_frame = 1 << 20;
  std::chrono::nanoseconds service_time{0};
  ServiceKind service_kind = ServiceKind::wait;
};

}  // namespace netdyno
