// Folly: N threads with an EventBase each; an AsyncServerSocket accepts on the first, each connection is an AsyncSocket
// on one of them.
#include <folly/io/async/AsyncServerSocket.h>
#include <folly/io/async/EventBase.h>
#include <folly/net/NetworkSocket.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/threads.hpp"
#include "worker.hpp"

namespace netdyno {
namespace {

/// Folly links libunwind, which takes the place of GCC's unwinder and opens a pipe at the first exception of a process.
/// This makes it happen now and not with the first client that resets, so that a later descriptor is a connection.
void have_unwinder_open_its_pipe() {
  try {
    throw std::exception{};
  } catch (const std::exception&) {
  }
}

/// The first worker's thread accepts and deals out connections, as one of the N does in source D; the main thread waits
/// for a shutdown signal.
class Server final : folly::AsyncServerSocket::AcceptCallback {
 public:
  Server(const ServerOptions& options, UniqueFd listener)
      : options_(options), connections_per_thread_(options.threads), listener_fd_(listener.get()) {
    for (int i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<Worker>(options_, counters_, workers_));
    listener_ = folly::AsyncServerSocket::newSocket(&accepting_base());
    listener_->useExistingSocket(folly::NetworkSocket::fromFd(listener.release()));
    listener_->addAcceptCallback(this, nullptr);
    listener_->startAccepting();
  }

  /// Main thread. When it returns, `options.threads` threads serve.
  void start() {
    start_or_die([this] {
      for (const auto& worker : workers_)
        threads_.push_back(std::async(std::launch::async, [&worker]() noexcept { worker->run(); }));
    });
  }

  /// Main thread. Waits until `stop` is readable, then for the threads to end their work; false when the grace ran out.
  bool finish_on_signal(int stop) {
    pollfd stop_signal{stop, POLLIN, 0};
    while (poll(&stop_signal, 1, -1) < 0) {
    }
    accepting_base().runInEventBaseThread([this] { end(); });
    const auto grace_ends = std::chrono::steady_clock::now() + shutdown_grace;
    return std::ranges::all_of(
        threads_, [=](auto& thread) { return thread.wait_until(grace_ends) == std::future_status::ready; });
  }

  Totals totals() const { return counters_.totals(); }
  const ConnectionsPerThread& connections_per_thread() const { return connections_per_thread_; }

 private:
  folly::EventBase& accepting_base() { return workers_.front()->base(); }

  void connectionAccepted(folly::NetworkSocket socket, const folly::SocketAddress&, AcceptInfo) noexcept override {
    deal_out(UniqueFd{socket.toFd()});
  }

  /// Round robin, as AsyncServerSocket would do it for callbacks on other EventBases; but its queues to them end with
  /// it, and with them the waiting connections, whereas a Worker's keeps its order until the last.
  void deal_out(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    counters_.add_connection();
    connections_per_thread_.add(next_);
    workers_[next_]->add_later(std::move(fd));
    next_ = (next_ + 1) % workers_.size();
  }

  void end() {
    while (true) {  // connected clients have been promised an answer
      Accepted next = accept_next(listener_fd_, true);
      if (next.status != AcceptStatus::accepted) break;
      deal_out(std::move(next.fd));
    }
    listener_.reset();
    for (const auto& worker : workers_) worker->end_later();
  }

  const ServerOptions& options_;
  Counters counters_;
  ConnectionsPerThread connections_per_thread_;
  Worker::Workers workers_;
  std::size_t next_ = 0;  // this, and what follows but `threads_`, on the first worker's thread
  int listener_fd_;
  std::shared_ptr<folly::AsyncServerSocket> listener_;
  std::vector<std::future<void>> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  have_unwinder_open_its_pipe();
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
