#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "lib/cli/url.hpp"
#include "lib/session/effects.hpp"
#include "servers/_shared/zmq/options.hpp"

namespace netdyno {

inline std::string_view bytes_of(const zmq::message_t& message) { return {message.data<char>(), message.size()}; }

/// A message whose bytes are those of `frame`, not a copy: the frame lives until libzmq has sent the last copy of it.
zmq::message_t message_sharing(const SharedFrame& frame);

/// Another message with the same bytes; they are shared, but for a handful that libzmq keeps in the message itself.
zmq::message_t copy_of(zmq::message_t& message);

/// A ROUTER socket that listens (zmq_socket(3)). One thread.
class Router {
 public:
  /// Dies with a hint when it cannot listen.
  explicit Router(const ZmqServerOptions& options);

  /// Where it listens, with the port that was chosen.
  Url endpoint() const;

  /// Becomes readable, edge-triggered, when something has changed; then receive() until nothing comes (ZMQ_FD,
  /// zmq_getsockopt(3)).
  int fd() const;
  /// Whether receive() has something. To be asked after send(), which may take in what fd() had to tell.
  bool has_input() const;

  struct Arrived {
    zmq::message_t from;  // the routing id of its sender
    zmq::message_t body;  // its first part
    bool one_part = true;
  };
  /// Nothing when nothing is there.
  std::optional<Arrived> receive();

  enum class Result {
    taken,
    full,  // as many messages wait for that peer as may
    gone   // there is no such peer (any more)
  };
  Result send(std::string_view peer, zmq::message_t message);

  /// Closes all connections. What was sent may take so long to get away.
  void close(std::chrono::nanoseconds linger);

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace netdyno
