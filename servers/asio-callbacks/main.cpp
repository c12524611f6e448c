// Boost.Asio, callback style: one io_context, N threads in run(), a connection is a chain of handlers on its strand.
#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "lib/cli/command_line.hpp"
#include "lib/cli/option_values.hpp"
#include "lib/server/application_tick.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/threads.hpp"
#include "servers/_shared/boost/connection.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, bool reads_parts)
      : shared_{options, {}, {}, reads_parts},
        io_(options.threads),
        protocol_(protocol_of(listener.get())),
        acceptor_(new_executor(), protocol_, listener.release()),
        timer_(acceptor_.get_executor()) {}

  /// Main thread. When it returns, `options.threads` threads serve.
  void start() {
    accept();
    start_or_die([this] {
      for (int i = 0; i < shared_.options.threads; ++i)
        threads_.push_back(std::async(std::launch::async, [this]() noexcept { io_.run(); }));
    });
  }

  /// Main thread. Waits for the threads to end their work; false when the grace ran out.
  bool finish() {
    asio::post(acceptor_.get_executor(), [this] { end(); });
    const auto grace_ends = std::chrono::steady_clock::now() + shutdown_grace;
    return std::ranges::all_of(
        threads_, [=](auto& thread) { return thread.wait_until(grace_ends) == std::future_status::ready; });
  }

  Totals totals() const { return shared_.counters.totals(); }

 private:
  static tcp protocol_of(int listener) {
    return tcp::endpoint{asio::ip::make_address(local_endpoint(listener).host), 0}.protocol();
  }

  /// One thread is one strand already.
  asio::any_io_executor new_executor() {
    if (shared_.options.threads == 1) return io_.get_executor();
    return asio::make_strand(io_);
  }

  void accept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code) {
      if (acceptor_.is_open()) take_in() ? accept() : pause();
    });
  }

  /// The queue is still full: try again only after a while.
  void pause() {
    timer_.expires_after(std::chrono::milliseconds{10});
    timer_.async_wait([this](error_code) {
      if (acceptor_.is_open()) accept();
    });
  }

  /// Accepts all waiting connections; false when descriptors or memory ran out.
  bool take_in() {
    while (true) {
      Accepted next = accept_next(acceptor_.native_handle(), true);
      if (next.status != AcceptStatus::accepted) return next.status != AcceptStatus::exhausted;
      start(std::move(next.fd));
    }
  }

  void start(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    tcp::socket socket{new_executor()};
    error_code error;
    socket.assign(protocol_, fd.get(), error);
    if (error) return;  // epoll watches no more descriptors: this client is closed, the others go on
    fd.release();
    shared_.counters.add_connection();
    const auto connection = std::make_shared<AsioConnection>(std::move(socket), shared_);
    shared_.registry.join(connection);
    asio::dispatch(connection->executor(), [connection] { connection->read(); });
  }

  /// Stops accepting, and ends every stream at what has arrived; run() returns when that is answered.
  void end() {
    take_in();  // connected clients have been promised an answer
    acceptor_.close();
    const auto members = shared_.registry.snapshot();
    for (const auto& connection : *members)
      asio::dispatch(connection->executor(), [connection] { connection->stop_receiving(); });
  }

  Shared shared_;
  asio::io_context io_;
  tcp protocol_;
  tcp::acceptor acceptor_;  // this, and what follows, on one strand
  asio::steady_timer timer_;
  std::vector<std::future<void>> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  ApplicationTick tick;
  bool reads_parts = false;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any, "tcp", [&](CommandLine& line) {
    tick.add_option(line);
    add_choice(line, "--read-mode", reads_parts, {{"joined", false}, {"apart", true}},
               "rpc and chat: a read takes what is there, or of a frame its length or its body");
  });
  const bool has_frames = (options.workload == Workload::rpc || options.workload == Workload::chat) && !options.tls;
  if (reads_parts && !has_frames) usage_error(program_name(argv[0]), "--read-mode apart: rpc or chat, without --tls");
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), reads_parts};
  server.start();
  announce_ready(endpoint);

  tick.run_until(stop.get());
  const bool all_gone = server.finish();
  tick.print_totals(server.totals());
  if (!all_gone) std::_Exit(0);  // a thread still burns CPU for a request, or a peer does not read; the totals are out
}
