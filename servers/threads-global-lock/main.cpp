// A thread per connection with blocking I/O, and one mutex held across the whole broadcast.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/server/broken_pipe.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/threads/locked_clients.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  explicit Server(const ServerOptions& options) : options_(options), clients_(options) {}

  /// Main thread only. Returns on a shutdown signal.
  void accept_until(int stop, int listener) {
    pollfd watched[] = {{stop, POLLIN, 0}, {listener, POLLIN, 0}};
    while (true) {
      Accepted next = accept_next(listener, false);
      if (next.status == AcceptStatus::accepted) {
        start(std::move(next.fd));
        continue;
      }
      // Out of descriptors: the queue stays readable, so try again only after a while.
      const bool exhausted = next.status == AcceptStatus::exhausted;
      poll(watched, exhausted ? 1 : 2, exhausted ? 10 : -1);
      if (watched[0].revents != 0) return;
    }
  }

  /// Main thread only. Ends every stream at what has arrived, and waits for the threads; false when the grace ran out.
  bool finish() {
    const auto deadline = std::chrono::steady_clock::now() + shutdown_grace;
    clients_.begin_shutdown();  // a broadcast that holds the lock waits for no further reader
    auto lock = clients_.lock();
    clients_.end_streams();
    return all_gone_.wait_until(lock, deadline, [this] { return running_ == 0; });
  }

  const Counters& counters() { return clients_.counters(); }
  const LockWaits& lock_waits() const { return clients_.lock_waits(); }

 private:
  void start(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    set_send_timeout(fd.get(), blocking_send_timeout);
    clients_.counters().add_connection();
    const auto lock = clients_.lock();
    try {
      std::thread{[this, fd = fd.get()] { run(UniqueFd{fd}); }}.detach();
    } catch (const std::system_error&) {
      return;  // no more threads to be had: this client is closed, the others go on
    }
    clients_.add(fd.release());
    ++running_;
  }

  /// The connection's own thread.
  void run(UniqueFd fd) {
    serve(fd.get());
    clients_.remove(fd.get());
    end_stream(fd.get());  // without the lock: it may have a flood to throw away, and nothing is sent to it any more
    const auto lock = clients_.lock();
    fd.reset();
    if (--running_ == 0) all_gone_.notify_all();
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
  LockedClients clients_;
  std::condition_variable all_gone_;
  int running_ = 0;  // guarded by the lock of clients_: threads not yet done
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  BrokenPipe broken_pipe;
  const ServerOptions options =
      parse_server_options(argc, argv, ThreadModel::per_connection, "tcp",
                           [&broken_pipe](CommandLine& line) { broken_pipe.add_option(line); });
  const UniqueFd stop = termination_signals();
  broken_pipe.apply();
  UniqueFd listener = listen_tcp(options, true);
  Server server{options};
  announce_ready(local_endpoint(listener.get()));

  server.accept_until(stop.get(), listener.get());
  listener.reset();
  const bool all_gone = server.finish();
  print_totals(server.counters().totals(), LockWaits::name, server.lock_waits().json());
  if (!all_gone) std::_Exit(0);  // threads are still blocked in their clients; the totals are out
}
