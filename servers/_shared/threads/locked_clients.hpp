#pragma once

#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lib/server/counted_send.hpp"
#include "lib/server/joined_writes.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/lock_waits.hpp"
#include "lib/session/session.hpp"

namespace netdyno {

/// The clients that threads with blocking I/O serve, under one mutex, which is held across a whole broadcast: this is
/// the model. Carries out what their sessions want done; where threads and clients come from, each server decides
/// itself. Any thread.
class LockedClients {
 public:
  explicit LockedClients(const ServerOptions& options) : options_(options) {}

  /// No client comes or goes meanwhile. add() and end_streams() want it held.
  std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }
  /// From now on the client gets what others broadcast.
  void add(int fd) { clients_.insert(fd); }
  /// Ends every stream at what has arrived.
  void end_streams() {
    for (const int fd : clients_) shutdown(fd, SHUT_RD);
  }
  /// Afterwards nothing is sent to the client any more.
  void remove(int fd) {
    const std::lock_guard lock{mutex_};
    clients_.erase(fd);
  }

  /// From now on a broadcast waits for no reader.
  void begin_shutdown() { ending_ = true; }
  bool is_ending() const { return ending_; }

  /// The thread that serves the client. Blocks until all effects are carried out; false when the client is done with.
  bool carry_out(const Effects& effects, int fd) {
    if (joins_) broadcast_joined(effects, fd);
    for (const Effect& effect : effects) {
      switch (effect.kind) {
        case Effect::Kind::write:
          if (!send(fd, effects.bytes(effect), Patience::while_it_reads)) return false;
          break;
        case Effect::Kind::broadcast:
          if (!joins_) broadcast(*effect.frame, fd);
          break;
        case Effect::Kind::wait:
          if (!wait_unless_reset(fd, effect.remaining())) return false;
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

  Counters& counters() { return counters_; }
  const LockWaits& lock_waits() const { return lock_waits_; }

 private:
  struct Queued {
    SharedFrame frame;
    int sender;
  };

  /// Deliveries single: a send for each recipient.
  void broadcast(const Frame& frame, int sender) {
    const auto lock = lock_waits_.lock(mutex_);  // held while sending: this is the model
    std::erase_if(clients_, [&](int client) {
      if (!is_recipient(client, sender)) return false;
      bool sent = true;
      for_each_part(frame, options_.write_mode,
                    [&](std::string_view part) { sent = sent && send(client, part, patience()); });
      return !sent;
    });
  }

  /// Deliveries joined: one send for each recipient of all that one read brought, and of what other threads have queued
  /// while this one waited for the lock. Where the thread that holds it has taken these frames, too, they are being
  /// sent, and this one goes on; it cannot close its descriptor before that is done, as remove() takes the lock.
  void broadcast_joined(const Effects& effects, int sender) {
    queue(effects, sender);
    if (!has_queued()) return;
    const auto lock = lock_waits_.lock(mutex_);  // held while sending: this is the model
    const std::vector<Queued> frames = take_queued();
    std::erase_if(clients_, [&](int client) {
      bool sent = true;
      JoinedWrites writes{options_.write_mode,
                          [&](std::span<iovec> parts) { sent = sent && send(client, parts, patience()); }};
      for (const Queued& queued : frames)
        if (is_recipient(client, queued.sender)) writes.add(*queued.frame);
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

  bool is_recipient(int client, int sender) const { return client != sender || options_.audience == Audience::all; }
  Patience patience() const { return ending_ ? Patience::none : Patience::one_timeout; }

  /// False when the client cannot be sent to any more; its own thread sees the end of its stream and closes it.
  template <class Bytes>
  bool send(int fd, Bytes bytes, Patience patience) {
    if (send_counted(fd, bytes, patience, counters_)) return true;
    shutdown(fd, SHUT_RDWR);
    return false;
  }

  const ServerOptions& options_;
  const bool joins_ = options_.workload == Workload::chat && options_.deliveries == DeliveryMode::joined;
  Counters counters_;
  LockWaits lock_waits_;
  std::mutex mutex_;
  std::atomic<bool> ending_{false};
  std::set<int> clients_;  // guarded by mutex_: the recipients of a broadcast
  std::mutex queue_mutex_;
  std::vector<Queued> queued_;  // guarded by queue_mutex_: broadcast, and not yet taken to be sent
};

}  // namespace netdyno
