// One thread accepts, and N threads with blocking I/O each take a connection from a bounded queue and serve it to its
// end; one mutex is held across the whole broadcast.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "lib/server/fifo.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/threads.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/threads/locked_clients.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  Server(const ServerOptions& options, int listener) : options_(options), listener_(listener), clients_(options) {}

  void start_threads() {
    running_ = options_.threads + 1;
    start_or_die([this] {
      for (int i = 0; i < options_.threads; ++i) std::thread{[this] { take_and_serve(); }}.detach();
      std::thread{[this] { accept_all(); }}.detach();
    });
  }

  /// Main thread only. Stops accepting, ends every stream at what has arrived, and waits for the threads; false
  /// when the grace ran out.
  bool finish() {
    const auto deadline = std::chrono::steady_clock::now() + shutdown_grace;
    clients_.begin_shutdown();       // a broadcast that holds the lock waits for no further reader
    shutdown(listener_, SHUT_RDWR);  // a thread that blocks in accept(2) is woken, with EINVAL
    wake_acceptor();
    auto lock = clients_.lock();
    clients_.end_streams();
    return all_gone_.wait_until(lock, deadline, [this] { return running_ == 0; });
  }

  const Counters& counters() { return clients_.counters(); }
  const LockWaits& lock_waits() const { return clients_.lock_waits(); }

 private:
  /// The acceptor's thread. It blocks in accept(2), and while the queue is full, when it accepts none.
  void accept_all() {
    while (true) {
      wait_for_room();
      Accepted next = accept_next(listener_, false);
      if (next.status == AcceptStatus::not_listening) break;
      if (next.status == AcceptStatus::accepted) queue_client(std::move(next.fd));
      if (next.status == AcceptStatus::exhausted) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    {
      const std::lock_guard lock{pool_mutex_};
      accepts_ = false;
    }
    may_take_.notify_all();
    end_thread();
  }

  void wait_for_room() {
    std::unique_lock lock{pool_mutex_};
    has_room_.wait(lock, [this] { return accepted_.size() < most_queued_ || clients_.is_ending(); });
  }

  void queue_client(UniqueFd fd) {
    {
      const std::lock_guard lock{pool_mutex_};
      accepted_.push(std::move(fd));
    }
    may_take_.notify_one();
  }

  /// A thread of the pool: it serves one client to its end before it takes the next.
  void take_and_serve() {
    while (UniqueFd fd = take_client()) serve_and_leave(std::move(fd));
    end_thread();
  }

  /// Blocks while there is none. Nothing when there will be no more.
  UniqueFd take_client() {
    std::unique_lock lock{pool_mutex_};
    may_take_.wait(lock, [this] { return !accepted_.empty() || !accepts_; });
    if (accepted_.empty()) return {};
    UniqueFd fd = accepted_.pop();
    has_room_.notify_one();
    return fd;
  }

  void end_thread() {
    const auto lock = clients_.lock();
    if (--running_ == 0) all_gone_.notify_all();
  }

  /// A thread of the pool, from a client's first byte to its last.
  void serve_and_leave(UniqueFd fd) {
    enter(fd.get());
    serve(fd.get());
    clients_.remove(fd.get());
    end_stream(fd.get());  // without the lock: it may have a flood to throw away, and nothing is sent to it any more
    const auto lock = clients_.lock();
    fd.reset();
  }

  void enter(int fd) {
    set_nodelay(fd, options_.nodelay);
    set_send_timeout(fd, blocking_send_timeout);
    clients_.counters().add_connection();
    const auto lock = clients_.lock();
    clients_.add(fd);
    if (clients_.is_ending()) shutdown(fd, SHUT_RD);
  }

  /// The shutdown has begun: once the lock has been had, the acceptor has seen that or waits already, so it misses no
  /// wake-up.
  void wake_acceptor() {
    { const std::lock_guard lock{pool_mutex_}; }
    has_room_.notify_one();
  }

  void serve(int fd) {
    const auto session = make_session(options_, clients_.counters());
    Effects effects{options_.write_mode};
    const auto buffer = std::make_unique_for_overwrite<char[]>(options_.read_buffer);  // touched by reads only
    bool open = true;
    while (open) {
      const ssize_t n = recv(fd, buffer.get(), options_.read_buffer, 0);
      if (n < 0) break;
      effects.clear();
      if (n > 0) {
        session->receive({buffer.get(), static_cast<std::size_t>(n)}, effects);
      } else {
        session->end(effects);
      }
      open = clients_.carry_out(effects, fd);
    }
  }

  const ServerOptions& options_;
  const int listener_;
  const std::size_t most_queued_ = static_cast<std::size_t>(options_.backlog);
  LockedClients clients_;
  std::condition_variable all_gone_;
  int running_ = 0;  // guarded by the lock of clients_: threads not yet done
  std::mutex pool_mutex_;
  std::condition_variable may_take_;
  std::condition_variable has_room_;
  Fifo<UniqueFd> accepted_;  // guarded by pool_mutex_: they wait for a thread
  bool accepts_ = true;      // guarded by pool_mutex_: more may come
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  const UniqueFd stop = termination_signals();
  const UniqueFd listener = listen_tcp(options, false);
  Server server{options, listener.get()};
  server.start_threads();
  announce_ready(local_endpoint(listener.get()));

  pollfd stop_signal{stop.get(), POLLIN, 0};
  while (poll(&stop_signal, 1, -1) <= 0) {
  }
  const bool all_gone = server.finish();
  print_totals(server.counters().totals(), LockWaits::name, server.lock_waits().json());
  if (!all_gone) std::_Exit(0);  // threads are still blocked in their clients; the totals are out
}
