#pragma once

#include "lib/server/options.hpp"

namespace netdyno {

/// Options of the ZeroMQ servers beside ServerOptions.
struct ZmqOptions {
  int io_threads = 1;  // of libzmq: they read, write and frame (ZMQ_IO_THREADS, zmq_ctx_set(3))
  int hwm = 1000;      // messages that may wait for one peer (ZMQ_SNDHWM, zmq_setsockopt(3)); half as many of one
};

struct ZmqServerOptions {
  ServerOptions server;
  ZmqOptions zmq;
};

/// As parse_server_options, for the transport zmq+tcp.
ZmqServerOptions parse_zmq_server_options(int argc, const char* const* argv, ThreadModel threads);

}  // namespace netdyno
