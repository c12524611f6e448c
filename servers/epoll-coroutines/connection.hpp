#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/session.hpp"
#include "common/socket.hpp"
#include "fifo.hpp"
#include "loop.hpp"
#include "task.hpp"

namespace netdyno {

/// A client: its socket, its session, what waits to be sent to it, and the coroutine that serves it. Loop's thread
/// only.
///
/// The socket is registered with epoll once, edge-triggered in both directions, and what epoll said is remembered
/// (readable_, writable_) until a system call proves it stale. So no epoll_ctl is made while a connection lives, and
/// one that is not read because its replies wait costs no wake-ups.
class Connection final : public Watched {
 public:
  Connection(UniqueFd fd, Loop& loop, const ServerOptions& options, Counters& counters);

  static constexpr std::uint32_t watched_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  int fd() const { return fd_.get(); }

  /// Waits for input or its end. It always waits for the next turn at least: one read per turn and connection, so
  /// that a flood on one does not starve the others.
  auto input() {
    struct Input : AlwaysWait {
      Connection& client;
      void await_suspend(std::coroutine_handle<> me) const {
        client.reader_ = me;
        if (client.readable_ || client.broken_) client.wake(client.reader_);
      }
    };
    return Input{{}, *this};
  }

  /// recv(2) after input().
  ssize_t read(std::span<char> buffer);

  /// Sends, or queues what the socket does not take now. `bytes` must stay until sent() is waited for.
  void send(std::string_view bytes);

  /// Waits until all that was queued is sent, or cannot be.
  auto sent() {
    struct Sent : AlwaysWait {
      Connection& client;
      bool await_ready() const { return client.outbox_.empty() || client.broken_; }
      void await_suspend(std::coroutine_handle<> me) const { client.drainer_ = me; }
    };
    return Sent{{}, *this};
  }

  /// Queues a frame, to be sent by the next flush() with whatever else is queued by then. A client whose queue stays
  /// above the outbox limit is given up and counted. True when a flush() is to be called that was not before.
  bool post(const SharedFrame& frame);
  void flush();

  bool broken() const { return broken_; }
  /// Nothing can be sent any more: whoever waits is told.
  void give_up();

  Session& session() { return *session_; }
  Effects effects;
  bool member = true;     // of the chat: broadcasts reach it
  std::size_t index = 0;  // in the server's list
  Task task;              // last: it is destroyed first, as it refers to all of the above

 private:
  struct Part {
    std::string_view bytes;
    SharedFrame keeps = {};
  };

  void on_events(std::uint32_t events) override;
  void queue(Part part);
  ssize_t write_some();
  void took(std::size_t bytes);
  void wake(std::coroutine_handle<>& waiting) {
    if (waiting) loop_.resume_later(std::exchange(waiting, {}));
  }

  const UniqueFd fd_;
  Loop& loop_;
  const ServerOptions& options_;
  Counters& counters_;
  const std::unique_ptr<Session> session_;
  Fifo<Part> outbox_;
  std::size_t outbox_bytes_ = 0;
  bool readable_ = false;
  bool ended_ = false;  // the peer will send no more: what can be read ends with a 0
  bool writable_ = true;
  bool flush_due_ = false;
  bool broken_ = false;
  std::coroutine_handle<> reader_;   // waits in input()
  std::coroutine_handle<> drainer_;  // waits in sent()
};

}  // namespace netdyno
