#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/server/backend.hpp"
#include "lib/server/fifo.hpp"
#include "lib/server/options.hpp"

namespace netdyno {

/// The connections to the backend, one question in flight on each. A thread without a free one waits, in the order of
/// arrival. Any thread. Without service kind backend it is empty.
class BlockingBackendPool {
 public:
  explicit BlockingBackendPool(const ServerOptions& options) {
    if (options.service_kind != ServiceKind::backend) return;
    for (int i = 0; i < options.pool; ++i) {
      connections_.push_back(connect_to_backend(options.backend));
      free_.push(connections_.back().get());
    }
  }

  bool empty() const { return connections_.empty(); }

  /// Blocks until the backend has replied after `duration`.
  void ask(std::chrono::nanoseconds duration) {
    BackendConnection* const connection = take();
    connection->ask(duration);
    connection->await_answer();
    give_back(connection);
  }

 private:
  struct Waiter {
    std::condition_variable given;
    BackendConnection* connection = nullptr;
  };

  BackendConnection* take() {
    std::unique_lock lock{mutex_};
    if (!free_.empty()) return free_.pop();
    Waiter waiter;
    waiting_.push(&waiter);
    waiter.given.wait(lock, [&waiter] { return waiter.connection != nullptr; });
    return waiter.connection;
  }

  /// Hands the connection to the first waiter, so that no newcomer takes it before.
  void give_back(BackendConnection* connection) {
    const std::lock_guard lock{mutex_};
    if (waiting_.empty()) return free_.push(connection);
    Waiter* first = waiting_.pop();
    first->connection = connection;
    first->given.notify_one();  // under the lock: afterwards the waiter may be gone
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<BackendConnection>> connections_;
  Fifo<BackendConnection*> free_;  // guarded by mutex_
  Fifo<Waiter*> waiting_;          // guarded by mutex_
};

}  // namespace netdyno
