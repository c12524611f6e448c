// Boost.Asio, callback style: an io_context for each of N threads; a connection is a chain of handlers on one of them.
#include <poll.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/threads.hpp"
#include "servers/_shared/boost/connection.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener)
      : shared_{options, {}, {}},
        connections_per_thread_(options.threads),
        contexts_(new_contexts(options.threads)),
        protocol_(protocol_of(listener.get())),
        acceptor_(contexts_.front(), protocol_, listener.release()),
        timer_(acceptor_.get_executor()) {
    for (asio::io_context& context : contexts_) {
      serving_.push_back(asio::make_work_guard(context));
      tcp::socket{context};  // has it open its epoll now, and not with its first connection
    }
  }

  /// Main thread. When it returns, `options.threads` threads serve.
  void start() {
    accept();
    start_or_die([this] {
      for (asio::io_context& context : contexts_)
        threads_.push_back(std::async(std::launch::async, [&context]() noexcept { context.run(); }));
    });
  }

  /// Main thread. Waits until `stop` is readable, then for the threads to end their work; false when the grace ran out.
  bool finish_on_signal(int stop) {
    pollfd stop_signal{stop, POLLIN, 0};
    while (poll(&stop_signal, 1, -1) < 0) {
    }
    asio::post(acceptor_.get_executor(), [this] { end(); });
    const auto grace_ends = std::chrono::steady_clock::now() + shutdown_grace;
    return std::ranges::all_of(
        threads_, [=](auto& thread) { return thread.wait_until(grace_ends) == std::future_status::ready; });
  }

  Totals totals() const { return shared_.counters.totals(); }
  const ConnectionsPerThread& connections_per_thread() const { return connections_per_thread_; }

 private:
  /// Each is a strand: it has one thread.
  static std::deque<asio::io_context> new_contexts(int threads) {
    std::deque<asio::io_context> contexts;
    for (int i = 0; i < threads; ++i) contexts.emplace_back(1);
    return contexts;
  }

  static tcp protocol_of(int listener) {
    return tcp::endpoint{asio::ip::make_address(local_endpoint(listener).host), 0}.protocol();
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
      deal_out(std::move(next.fd));
    }
  }

  /// To the contexts in turn. A connection stays with its context.
  void deal_out(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    tcp::socket socket{contexts_[next_]};
    error_code error;
    socket.assign(protocol_, fd.get(), error);
    if (error) return;  // epoll watches no more descriptors: this client is closed, the others go on
    fd.release();
    shared_.counters.add_connection();
    connections_per_thread_.add(next_);
    next_ = (next_ + 1) % contexts_.size();
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
    serving_.clear();
  }

  Shared shared_;
  ConnectionsPerThread connections_per_thread_;
  std::deque<asio::io_context> contexts_;
  std::size_t next_ = 0;
  tcp protocol_;
  tcp::acceptor acceptor_;  // this, and what follows, on the first context only
  asio::steady_timer timer_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> serving_;  // also without a connection
  std::vector<std::future<void>> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start();
  announce_ready(endpoint);

  const bool all_gone = server.finish_on_signal(stop.get());
  print_totals(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
  if (!all_gone) std::_Exit(0);  // a thread still burns CPU for a request, or a peer does not read; the totals are out
}
