#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "lib/cli/url.hpp"
#include "lib/protocol/workload.hpp"
#include "lib/session/options.hpp"

namespace netdyno {

class CommandLine;

/// How many threads a model can have; a value that the model cannot have is refused, never ignored.
enum class ThreadModel { any, one, per_connection };

/// Whether a server has a pool of connections to a backend, which its requests can wait for.
enum class Backend { none, pool };

/// Whether the loops of a server can poll busily before they sleep.
enum class BusyPoll { none, possible };

/// What a server has of the options that not every server has.
struct Offered {
  ThreadModel threads;
  Backend backend;
  BusyPoll busy_poll;
  Offered(ThreadModel thread_model, Backend has_backend = Backend::none, BusyPoll polls_busily = BusyPoll::none)
      : threads(thread_model), backend(has_backend), busy_poll(polls_busily) {}
};

/// The options that every server takes (the program contract), with their defaults. Some exist for some transports
/// only, and are refused elsewhere.
struct ServerOptions : SessionOptions {
  Url listen{"tcp", "127.0.0.1", 0, ""};  // multicast: a group, and `all` below
  int threads = 1;
  int backlog = 4096;
  bool nodelay = true;
  std::string tls_file;  // certificate and key, in PEM; empty: without TLS
  std::size_t read_buffer = 16 << 10;
  Audience audience = Audience::others;
  DeliveryMode deliveries = DeliveryMode::joined;  // not of ZeroMQ, which joins by itself
  std::size_t outbox_limit = 4 << 20;
  Url backend{"tcp", "", 0, ""};          // service kind backend: where it is
  int pool = 10;                          // connections to it
  std::chrono::nanoseconds busy_poll{0};  // how long a loop asks for events before it sleeps
  // Transports without connections (protocol/WIRE.md).
  std::size_t peers = 16384;
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds{30};
  std::size_t socket_buffer = 0;  // SO_RCVBUF and SO_SNDBUF; 0: as the system has it

  /// How frames leave for a peer. A reply is no delivery: how many of them leave together is the write mode's.
  DeliveryMode delivery_mode() const { return workload == Workload::chat ? deliveries : DeliveryMode::joined; }
};

/// Parses the command line. Ends the program on `--help` (exit 0) and on an unknown option or a bad value (exit 2, one
/// clear line on stderr). `transport` is the one that the server speaks; `add_own` adds options of its own.
ServerOptions parse_server_options(int argc, const char* const* argv, Offered offered,
                                   const std::string& transport = "tcp",
                                   const std::function<void(CommandLine&)>& add_own = {});

/// The options of a server of streams as one JSON object (protocol/WIRE.md, "Options"): every option, sizes in bytes
/// and durations in nanoseconds. Its texts, but for a path, hold no character that
/// JSON escapes.
std::string format_resolved(const ServerOptions& options);

}  // namespace netdyno
