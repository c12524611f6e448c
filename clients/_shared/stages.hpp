#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

/// Common parts of the client libraries: the stages of an exchange, their limits, and how each can fail. It needs
/// nothing but the standard library, so that a program can embed a client without the rest of the project.
namespace netdyno::client {

/// The stage of a client. `idle`: it has a connection and no request under way.
enum class Stage { resolve, connect, write, answer, idle };

/// "resolve"
constexpr std::string_view name_of(Stage stage) {
  constexpr std::string_view names[] = {"resolve", "connect", "write", "answer", "idle"};
  return names[static_cast<std::size_t>(stage)];
}

/// By when each stage must be over: `resolve` and `connect` count from the beginning of the attempt, `write` and
/// `answer` from that of the request. So `connect` limits the whole way to a connection, and `answer` a whole exchange.
struct Limits {
  std::chrono::nanoseconds resolve = std::chrono::seconds{5};
  std::chrono::nanoseconds connect = std::chrono::seconds{5};
  std::chrono::nanoseconds write = std::chrono::seconds{5};
  std::chrono::nanoseconds answer = std::chrono::seconds{5};

  std::chrono::nanoseconds limit_of(Stage stage) const {
    const std::chrono::nanoseconds limits[] = {resolve, connect, write, answer};
    return limits[static_cast<std::size_t>(stage)];
  }
};

/// How a client works; the defaults are what an application wants.
struct Options {
  Limits limits;
  std::size_t max_body = 16 << 20;  // bytes of an answer
  bool nodelay = true;
  bool split_writes = false;  // length and body in a system call each
};

enum class Reason { timed_out, refused, closed, reset, malformed, other };

/// The stage that failed, and why. `code` is the errno behind it, 0 where the framework does not tell it.
struct Error {
  Stage stage;
  Reason reason;
  int code = 0;

  /// "the connect stage failed: refused"
  std::string text() const {
    constexpr std::string_view names[] = {"timed out", "refused",   "closed by the server",
                                          "reset",     "malformed", "other"};
    return "the " + std::string{name_of(stage)} +
           " stage failed: " + std::string{names[static_cast<std::size_t>(reason)]};
  }
};

/// A message of the stream: its body's length as 4 bytes in network byte order, then the body.
struct FrameView {
  static constexpr std::size_t header_size = 4;
  std::string_view whole;

  std::string_view body() const { return whole.substr(header_size); }
};

/// The meaning of a received frame to the application.
enum class Received {
  incomplete,  // this is not the answer, or not all of it: the client waits on, up to the same limit
  answered,    // the application may already have sent the next request
  broken       // this cannot be right: the client drops the connection, and fails with Reason::malformed
};

/// Callbacks to the application, on the thread of the client's loop. Each may call the client's methods, and none may
/// destroy it. After `failed` the connection is gone; connect() starts a new one.
struct Handlers {
  std::function<void()> resolved = [] {};
  std::function<void()> connected;
  std::function<Received(FrameView)> received;
  std::function<void(const Error&)> failed;
};

}  // namespace netdyno::client
