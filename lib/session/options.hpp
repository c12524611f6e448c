#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "lib/protocol/workload.hpp"

namespace netdyno {

class TlsLayer;

/// The options of the work of a session.
struct SessionOptions {
  Workload workload = Workload::echo;
  std::size_t max_frame = 1 << 20;
  std::chrono::nanoseconds service_time{0};
  ServiceKind service_kind = ServiceKind::wait;
  WriteMode write_mode = WriteMode::gathered;
  std::shared_ptr<TlsLayer> tls;  // of a server of streams that encrypts; else null
};

}  // namespace netdyno
