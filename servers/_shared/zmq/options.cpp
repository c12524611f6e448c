#include "servers/_shared/zmq/options.hpp"

#include <CLI/CLI.hpp>

namespace netdyno {

ZmqServerOptions parse_zmq_server_options(int argc, const char* const* argv, ThreadModel threads) {
  ZmqOptions zmq;
  const auto add_own = [&zmq](CLI::App& app) {
    app.add_option("--io-threads", zmq.io_threads, "threads of libzmq that read and write")->check(CLI::Range(1, 64));
    app.add_option("--hwm", zmq.hwm, "messages that may wait for one peer before more are dropped")
        ->check(CLI::Range(1, 1 << 24));
  };
  ServerOptions server = parse_server_options(argc, argv, threads, "zmq+tcp", add_own);
  return {std::move(server), zmq};
}

}  // namespace netdyno
