#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <vector>

#include "lib/net/send.hpp"
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
    const int connection = take();
    if (send_all(connection, encode_question(duration)) != SendResult::sent) die_without_backend();
    await_answer(connection);
    give_back(connection);
  }

 private:
  struct Waiter {
    std::condition_variable given;
    int connection = -1;
  };

  int take() {
    std::unique_lock lock{mutex_};
    if (!free_.empty()) return free_.pop();
    Waiter waiter;
    waiting_.push(&waiter);
    waiter.given.wait(lock, [&waiter] { return waiter.connection >= 0; });
    return waiter.connection;
  }

  /// Hands the connection to the first waiter, so that no newcomer takes it before.
  void give_back(int connection) {
    const std::lock_guard lock{mutex_};
    if (waiting_.empty()) return free_.push(connection);
    Waiter* first = waiting_.pop();
    first->connection = connection;
    first->given.notify_one();  // under the lock: afterwards the waiter may be gone
  }

  static void await_answer(int connection) {
    FrameReader answers = make_answer_reader();
    std::array<char, 256> buffer;
    for (bool answered = false; !answered;) {
      const ssize_t size = recv(connection, buffer.data(), buffer.size(), 0);
      if (size <= 0) die_without_backend();
      answers.receive({buffer.data(), static_cast<std::size_t>(size)},
                      [&answered](std::string_view) { return answered = true; });
    }
  }

  std::mutex mutex_;
  std::vector<UniqueFd> connections_;
  Fifo<int> free_;         // guarded by mutex_
  Fifo<Waiter*> waiting_;  // guarded by mutex_
};

}  // namespace netdyno
