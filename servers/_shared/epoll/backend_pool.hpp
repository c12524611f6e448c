#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "lib/server/backend.hpp"
#include "lib/server/fifo.hpp"
#include "lib/server/options.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// The connections to the backend, one question in flight on each. A question without a free one waits, in the order
/// of arrival. Loop's thread only. Without service kind backend it is empty.
template <Continuation Next>
class BackendPool {
 public:
  BackendPool(Loop<Next>& loop, const ServerOptions& options) : loop_(loop) {
    if (options.service_kind != ServiceKind::backend) return;
    for (int i = 0; i < options.pool; ++i) {
      connections_.push_back(std::make_unique<Asked>(*this, connect_to_backend(options.backend)));
      free_.push(connections_.back().get());
    }
  }

  bool empty() const { return connections_.empty(); }

  /// When the backend has replied after `duration`. The continuation must be valid until then.
  void when_replied(std::chrono::nanoseconds duration, Next next) {
    waiting_.push({duration, next});
    ask_next();
  }

 private:
  struct Question {
    std::chrono::nanoseconds duration;
    Next next;
  };

  class Asked final : public Watched {
   public:
    Asked(BackendPool& pool, std::unique_ptr<BackendConnection> connection)
        : pool_(pool), connection_(std::move(connection)) {
      if (!pool.loop_.poller().watch(connection_->fd(), EPOLLIN | EPOLLET, *this)) die_without_backend();
    }

    void ask(const Question& question) {
      next_ = question.next;
      connection_->ask(question.duration);
    }

   private:
    void on_events(std::uint32_t) override {
      if (connection_->take_answer() && next_) {
        pool_.loop_.call_soon(std::exchange(next_, Next{}));
        pool_.free_.push(this);
      }
      pool_.ask_next();
    }

    BackendPool& pool_;
    const std::unique_ptr<BackendConnection> connection_;
    Next next_{};
  };

  void ask_next() {
    while (!free_.empty() && !waiting_.empty()) free_.pop()->ask(waiting_.pop());
  }

  Loop<Next>& loop_;
  std::vector<std::unique_ptr<Asked>> connections_;
  Fifo<Asked*> free_;
  Fifo<Question> waiting_;
};

}  // namespace netdyno
