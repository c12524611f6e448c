#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/cli/url.hpp"

/// The server that requests wait for with service kind backend (protocol/WIRE.md, Backend): one that speaks rpc, or
/// PostgreSQL.
namespace netdyno {

/// A connection to the backend, with one question in flight at most. One thread at a time. Each call ends the program
/// where the backend is gone: without it, it has no answers.
class BackendConnection {
 public:
  virtual ~BackendConnection() = default;
  /// Readable when more of an answer has come.
  virtual int fd() const = 0;
  /// Asks for an answer after `duration`, in whole microseconds.
  virtual void ask(std::chrono::nanoseconds duration) = 0;
  /// Takes what has come, without blocking. True when the answer is complete.
  virtual bool take_answer() = 0;
  /// Blocks until the answer is complete.
  virtual void await_answer() = 0;
};

/// Blocks until the connection is there; ends the program with a hint where it cannot be.
std::unique_ptr<BackendConnection> connect_to_backend(const Url& backend);

/// The function that the library of lib/postgresql/ has under this name.
using ConnectToPostgresql = BackendConnection*(const Url& backend);
inline constexpr const char* connect_to_postgresql_name = "netdyno_connect_to_postgresql";

/// Ends the program: without its backend it has no answers.
[[noreturn]] void die_without_backend();

}  // namespace netdyno
