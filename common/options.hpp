#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/url.hpp"

namespace netdyno {

enum class Workload { echo, lines, rpc, chat, http };
enum class WriteMode { gathered, split };
enum class Audience { others, all };
enum class ServiceKind { wait, cpu };

/// How many threads a model can have; a value that the model cannot have is refused, never ignored.
enum class ThreadModel { any, one, per_connection };

/// The options that every server takes (the program contract). Defaults are what a person gets who gives none.
struct ServerOptions {
  Url listen{"tcp", "127.0.0.1", 0, ""};
  Workload workload = Workload::echo;
  int threads = 1;
  int backlog = 4096;
  bool nodelay = true;
  std::size_t read_buffer = 16 << 10;
  WriteMode write_mode = WriteMode::gathered;
  Audience audience = Audience::others;
  std::chrono::nanoseconds service_time{0};
  ServiceKind service_kind = ServiceKind::wait;
  std::size_t max_frame = 1 << 20;
  std::size_t outbox_limit = 4 << 20;
};

/// Parses the command line. Ends the program on `--help` (exit 0) and on an unknown option or a bad value (exit 2, one
/// clear line on stderr).
ServerOptions parse_server_options(int argc, const char* const* argv, ThreadModel threads);

std::string_view to_string(Workload workload);

}  // namespace netdyno
