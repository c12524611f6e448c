#include "servers/_shared/zmq/options.hpp"

#include "lib/cli/command_line.hpp"

namespace netdyno {

ZmqServerOptions parse_zmq_server_options(int argc, const char* const* argv, ThreadModel threads) {
  ZmqOptions zmq;
  const auto add_own = [&zmq](CommandLine& line) {
    line.add_number("--io-threads", zmq.io_threads, 1, 64, "threads of libzmq that read and write");
    line.add_number("--hwm", zmq.hwm, 1, 1 << 24, "messages that may wait for one peer before more are dropped");
  };
  ServerOptions server = parse_server_options(argc, argv, threads, "zmq+tcp", add_own);
  return {std::move(server), zmq};
}

}  // namespace netdyno
