// A thread per connection with blocking I/O; a broadcast sends to a copy of the registry, outside its lock.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/broken_pipe.hpp"
#include "lib/server/counted_send.hpp"
#include "lib/server/joined_writes.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/lock_waits.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/threads/backend_pool.hpp"

namespace netdyno {
namespace {

/// Keeps the frames whole that several threads send to one socket. servers/threads-snapshot-unlocked puts another here.
#ifdef NETDYNO_WRITE_LOCK
using WriteLock = NETDYNO_WRITE_LOCK;
#else
using WriteLock = std::mutex;
#endif

/// A client's socket. Its descriptor stays open, and so is not given to another client, for as long as a snapshot holds
/// the connection.
class Connection {
 public:
  Connection(UniqueFd fd, Counters& counters) : fd_(std::move(fd)), counters_(counters) {}

  int fd() const { return fd_.get(); }

  /// The connection's own thread. False when the client cannot be sent to any more.
  bool reply(std::string_view bytes) {
    const std::lock_guard lock{write_lock_};
    return send(bytes, Patience::while_it_reads);
  }

  /// Any thread. Sends a frame whole, without other bytes between its parts. To a client that cannot be sent to it
  /// sends nothing; that client's own thread sees the end of its stream and closes it.
  void deliver(const Frame& frame, WriteMode mode) {
    const std::lock_guard lock{write_lock_};
    for_each_part(frame, mode, [this](std::string_view part) { send(part, Patience::one_timeout); });
  }

  /// Any thread. The frame waits for the next send_queued(), of whichever thread.
  void queue(SharedFrame frame) {
    const std::lock_guard lock{queue_mutex_};
    queued_.push_back(std::move(frame));
  }

  /// Any thread. Sends together what is queued, also by other threads while this one waited for the write lock. Where
  /// another has taken all of it, that is being sent, and this one goes on.
  void send_queued(WriteMode mode) {
    if (!has_queued()) return;
    const std::lock_guard lock{write_lock_};
    const std::vector<SharedFrame> frames = take_queued();
    JoinedWrites writes{mode, [this](std::span<iovec> parts) { send(parts, Patience::one_timeout); }};
    for (const SharedFrame& frame : frames) writes.add(*frame);
    writes.flush();
  }

  /// The connection's own thread. Ends the stream after the frame that is being sent: the peer does not have to wait
  /// for the snapshots that still hold the descriptor.
  void end() {
    const std::lock_guard lock{write_lock_};
    broken_ = true;
    end_stream(fd());
  }

 private:
  bool has_queued() {
    const std::lock_guard lock{queue_mutex_};
    return !queued_.empty();
  }

  std::vector<SharedFrame> take_queued() {
    const std::lock_guard lock{queue_mutex_};
    return std::exchange(queued_, {});
  }

  template <class Bytes>
  bool send(Bytes bytes, Patience patience) {
    if (broken_) return false;  // a thread that waited for the lock while a send timed out must not time out again
    if (send_counted(fd(), bytes, patience, counters_)) return true;
    broken_ = true;
    shutdown(fd(), SHUT_RDWR);
    return false;
  }

  const UniqueFd fd_;
  Counters& counters_;
  WriteLock write_lock_;
  std::atomic<bool> broken_ = false;  // nothing can be sent any more
  std::mutex queue_mutex_;
  std::vector<SharedFrame> queued_;  // guarded by queue_mutex_: said, and not yet taken to be sent
};

class Server {
 public:
  explicit Server(const ServerOptions& options) : options_(options), backend_(options) {}

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

  /// Ends every stream at what has arrived, and waits for the threads; false when the grace ran out. No more are
  /// accepted.
  bool finish() {
    std::unique_lock lock{mutex_};
    for (const auto& client : clients_) shutdown(client->fd(), SHUT_RD);
    return all_gone_.wait_for(lock, shutdown_grace, [this] { return running_ == 0; });
  }

  const Counters& counters() const { return counters_; }
  const LockWaits& lock_waits() const { return lock_waits_; }

 private:
  void start(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    set_send_timeout(fd.get(), blocking_send_timeout);
    counters_.add_connection();
    auto client = std::make_shared<Connection>(std::move(fd), counters_);
    const std::lock_guard lock{mutex_};
    try {
      std::thread{[this, client]() mutable { run(std::move(client)); }}.detach();
    } catch (const std::system_error&) {
      return;  // no more threads to be had: this client is closed, the others go on
    }
    clients_.push_back(std::move(client));
    ++running_;
  }

  /// The connection's own thread.
  void run(std::shared_ptr<Connection> client) {
    serve(*client);
    client->end();
    const std::lock_guard lock{mutex_};
    std::erase(clients_, client);
    client.reset();  // closes the descriptor, or leaves that to the last snapshot
    if (--running_ == 0) all_gone_.notify_all();
  }

  void serve(Connection& client) {
    const auto session = make_session(options_, counters_);
    Effects effects{options_.write_mode};
    const auto buffer = std::make_unique_for_overwrite<char[]>(options_.read_buffer);  // touched by reads only
    bool open = true;
    while (open) {
      const ssize_t n = recv(client.fd(), buffer.get(), options_.read_buffer, 0);
      if (n < 0) break;
      effects.clear();
      if (n > 0) {
        session->receive({buffer.get(), static_cast<std::size_t>(n)}, effects);
      } else {
        session->end(effects);
      }
      if (joins_) broadcast_joined(effects, client);
      open = carry_out(effects, client);
    }
  }

  bool carry_out(const Effects& effects, Connection& client) {
    for (const Effect& effect : effects) {
      switch (effect.kind) {
        case Effect::Kind::write:
          if (!client.reply(effects.bytes(effect))) return false;
          break;
        case Effect::Kind::broadcast:
          if (!joins_) broadcast(*effect.frame, client);
          break;
        case Effect::Kind::wait:
          if (!backend_.empty()) {
            backend_.ask(effect.remaining());
          } else if (!wait_unless_reset(client.fd(), effect.remaining())) {
            return false;
          }
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
  void broadcast(const Frame& frame, const Connection& sender) {
    for (const auto& client : snapshot())  // sent to outside the lock: this is the model
      if (is_recipient(*client, sender)) client->deliver(frame, options_.write_mode);
  }

  /// Deliveries joined: one send for each recipient of all that one read brought, and of what other threads have queued
  /// for the same recipient meanwhile. All is queued before anything is sent, so that the first thread to reach a
  /// recipient sends it all.
  void broadcast_joined(const Effects& effects, const Connection& sender) {
    if (effects.empty()) return;
    const auto clients = snapshot();
    for (const Effect& effect : effects)
      if (effect.kind == Effect::Kind::broadcast)
        for (const auto& client : clients)
          if (is_recipient(*client, sender)) client->queue(effect.frame);
    for (const auto& client : clients) client->send_queued(options_.write_mode);  // outside the lock: this is the model
  }

  bool is_recipient(const Connection& client, const Connection& sender) const {
    return &client != &sender || options_.audience == Audience::all;
  }

  std::vector<std::shared_ptr<Connection>> snapshot() {
    const auto lock = lock_waits_.lock(mutex_);
    return clients_;
  }

  const ServerOptions& options_;
  const bool joins_ = options_.workload == Workload::chat && options_.deliveries == DeliveryMode::joined;
  BlockingBackendPool backend_;
  Counters counters_;
  LockWaits lock_waits_;
  std::mutex mutex_;
  std::condition_variable all_gone_;
  std::vector<std::shared_ptr<Connection>> clients_;  // guarded by mutex_: the recipients of a broadcast
  int running_ = 0;                                   // guarded by mutex_: threads not yet done
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  BrokenPipe broken_pipe;
  const ServerOptions options =
      parse_server_options(argc, argv, {ThreadModel::per_connection, Backend::pool}, "tcp",
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
