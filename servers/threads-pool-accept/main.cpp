// N threads with blocking I/O share one listener: each blocks in accept(2), and serves that client to its end before it
// accepts the next; one mutex is held across the whole broadcast.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/joined_writes.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/lock_waits.hpp"
#include "lib/server/threads.hpp"
#include "lib/session/session.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  Server(const ServerOptions& options, int listener) : options_(options), listener_(listener) {}

  void start_threads() {
    running_ = options_.threads;
    start_or_die([this] {
      for (int i = 0; i < options_.threads; ++i) std::thread{[this] { accept_and_serve(); }}.detach();
    });
  }

  /// Main thread only. Stops accepting, ends every stream at what has arrived, and waits for the threads; false
  /// when the grace ran out.
  bool finish() {
    const auto deadline = std::chrono::steady_clock::now() + shutdown_grace;
    ending_ = true;                  // a broadcast that holds the lock waits for no further reader
    shutdown(listener_, SHUT_RDWR);  // every thread that blocks in accept(2) is woken, with EINVAL
    std::unique_lock lock{mutex_};
    for (const int fd : clients_) shutdown(fd, SHUT_RD);
    return all_gone_.wait_until(lock, deadline, [this] { return running_ == 0; });
  }

  const Counters& counters() const { return counters_; }
  const LockWaits& lock_waits() const { return lock_waits_; }

 private:
  struct Queued {
    SharedFrame frame;
    int sender;
  };

  /// A thread of the pool: it serves one client to its end before it accepts the next.
  void accept_and_serve() {
    while (true) {
      Accepted next = accept_next(listener_, false);
      if (next.status == AcceptStatus::not_listening) break;
      if (next.status == AcceptStatus::accepted) serve_and_leave(std::move(next.fd));
      if (next.status == AcceptStatus::exhausted) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    end_thread();
  }

  void end_thread() {
    const std::lock_guard lock{mutex_};
    if (--running_ == 0) all_gone_.notify_all();
  }

  /// A thread of the pool, from a client's first byte to its last.
  void serve_and_leave(UniqueFd fd) {
    enter(fd.get());
    serve(fd.get());
    leave(fd.get());
    end_stream(fd.get());  // without the lock: it may have a flood to throw away, and nothing is sent to it any more
    const std::lock_guard lock{mutex_};
    fd.reset();
  }

  void enter(int fd) {
    set_nodelay(fd, options_.nodelay);
    set_send_timeout(fd, blocking_send_timeout);
    counters_.add_connection();
    const std::lock_guard lock{mutex_};
    clients_.insert(fd);
    if (ending_) shutdown(fd, SHUT_RD);
  }

  void leave(int fd) {
    const std::lock_guard lock{mutex_};
    clients_.erase(fd);
  }

  void serve(int fd) {
    const auto session = make_session(options_, counters_);
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
      if (joins_) broadcast_joined(effects, fd);
      open = carry_out(effects, fd);
    }
  }

  bool carry_out(const Effects& effects, int fd) {
    for (const Effect& effect : effects) {
      switch (effect.kind) {
        case Effect::Kind::write:
          if (!send_counted(fd, effects.bytes(effect), Patience::while_it_reads)) return false;
          break;
        case Effect::Kind::broadcast:
          if (!joins_) broadcast(*effect.frame, fd);
          break;
        case Effect::Kind::wait:
          if (!wait_unless_reset(fd, effect.duration)) return false;
          break;
        case Effect::Kind::burn:
          burn_cpu(effect.duration);
          break;
        case Effect::Kind::close:
          return false;
      }
    }
    return true;
  }

  /// Deliveries single: a send for each recipient.
  void broadcast(const Frame& frame, int sender) {
    const auto lock = lock_waits_.lock(mutex_);  // held while sending: this is the model
    std::erase_if(clients_, [&](int client) {
      if (!hears(client, sender)) return false;
      bool sent = true;
      for_each_part(frame, options_.write_mode,
                    [&](std::string_view part) { sent = sent && send_counted(client, part, patience()); });
      return !sent;
    });
  }

  /// Deliveries joined: one send for each recipient of all that one read brought, and of what other threads have queued
  /// while this one waited for the lock. Where the thread that holds it has taken these frames, too, they are being
  /// sent, and this one goes on; it cannot close its descriptor before that is done, as to leave takes the lock.
  void broadcast_joined(const Effects& effects, int sender) {
    queue(effects, sender);
    if (!has_queued()) return;
    const auto lock = lock_waits_.lock(mutex_);  // held while sending: this is the model
    const std::vector<Queued> frames = take_queued();
    std::erase_if(clients_, [&](int client) {
      bool sent = true;
      JoinedWrites writes{options_.write_mode,
                          [&](std::span<iovec> parts) { sent = sent && send_counted(client, parts, patience()); }};
      for (const Queued& queued : frames)
        if (hears(client, queued.sender)) writes.add(*queued.frame);
      writes.flush();
      return !sent;
    });
  }

  void queue(const Effects& effects, int sender) {
    const std::lock_guard lock{queue_mutex_};
    for (const Effect& effect : effects)
      if (effect.kind == Effect::Kind::broadcast) queued_.push_back({effect.frame, sender});
  }

  bool has_queued() {
    const std::lock_guard lock{queue_mutex_};
    return !queued_.empty();
  }

  std::vector<Queued> take_queued() {
    const std::lock_guard lock{queue_mutex_};
    return std::exchange(queued_, {});
  }

  bool hears(int client, int sender) const { return client != sender || options_.audience == Audience::all; }
  Patience patience() const { return ending_ ? Patience::none : Patience::one_timeout; }

  bool send_counted(int fd, std::string_view bytes, Patience patience) {
    iovec part = part_of(bytes);
    return send_counted(fd, {&part, 1}, patience);
  }

  /// False when the client cannot be sent to any more; its own thread sees the end of its stream and closes it.
  bool send_counted(int fd, std::span<iovec> parts, Patience patience) {
    const std::size_t size = size_of(parts);
    const SendResult result = send_all(fd, parts, patience);
    if (result == SendResult::sent) {
      counters_.add_bytes_out(size);
      return true;
    }
    if (result == SendResult::timed_out) counters_.add_slow_closed();
    shutdown(fd, SHUT_RDWR);
    return false;
  }

  const ServerOptions& options_;
  const int listener_;
  const bool joins_ = options_.workload == Workload::chat && options_.deliveries == DeliveryMode::joined;
  Counters counters_;
  LockWaits lock_waits_;
  std::mutex mutex_;
  std::condition_variable all_gone_;
  std::atomic<bool> ending_{false};
  std::set<int> clients_;  // guarded by mutex_: the recipients of a broadcast
  int running_ = 0;        // guarded by mutex_: threads not yet done
  std::mutex queue_mutex_;
  std::vector<Queued> queued_;  // guarded by queue_mutex_: said, and not yet taken to be sent
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
