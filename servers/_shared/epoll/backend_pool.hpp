#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
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
    Asked(BackendPool& pool, UniqueFd fd) : pool_(pool), fd_(std::move(fd)) {
      fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
      if (!pool.loop_.poller().watch(fd_.get(), EPOLLIN | EPOLLET, *this)) die_without_backend();
    }

    /// A question is shorter than any socket's buffer, which is empty.
    void ask(const Question& question) {
      next_ = question.next;
      const std::string frame = encode_question(question.duration);
      if (::send(fd_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(frame.size()))
        die_without_backend();
    }

   private:
    void on_events(std::uint32_t) override {
      std::array<char, 256> buffer;
      ssize_t size = 0;
      while ((size = recv(fd_.get(), buffer.data(), buffer.size(), 0)) > 0)
        answers_.receive({buffer.data(), static_cast<std::size_t>(size)}, [this](std::string_view) {
          pool_.loop_.call_soon(std::exchange(next_, Next{}));
          pool_.free_.push(this);
          return true;
        });
      if (size == 0 || (errno != EAGAIN && errno != EINTR)) die_without_backend();
      pool_.ask_next();
    }

    BackendPool& pool_;
    const UniqueFd fd_;
    FrameReader answers_ = make_answer_reader();
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
