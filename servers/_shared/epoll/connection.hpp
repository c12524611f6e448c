#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "lib/server/fifo.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// A client: its socket, its session, and what waits to be sent to it. Loop's thread only.
///
/// The socket is registered with epoll once, edge-triggered in both directions, and what epoll said is remembered
/// (readable_, writable_) until a system call proves it stale. So no epoll_ctl is made while a connection lives, and
/// one that is not read because its replies wait costs no wake-ups.
template <Continuation Next>
class EpollConnection : public Watched {
 public:
  EpollConnection(UniqueFd fd, Loop<Next>& loop, const ServerOptions& options, Counters& counters)
      : effects(options.write_mode),
        fd_(std::move(fd)),
        loop_(loop),
        options_(options),
        counters_(counters),
        session_(make_session(options, counters)) {}

  int fd() const { return fd_.get(); }
  /// False when the kernel has no room for it.
  [[nodiscard]] bool watch() { return loop_.poller().watch(fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this); }

  /// When there is input or its end, in the next turn at the earliest: one read per turn and connection, so that a
  /// flood on one does not starve the others.
  void when_readable(Next next) {
    reader_ = next;
    if (readable_ || broken_) wake(reader_);
  }
  /// One read, and what the session makes of it, which is in `effects` then.
  void receive(std::span<char> buffer);

  /// Sends, or queues what the socket does not take now. `bytes` must stay until all is sent.
  void send(std::string_view bytes) {
    queue({bytes});
    flush();
  }
  /// Nothing waits to be sent, or nothing can be.
  bool all_sent() const { return outbox_.empty(); }
  /// When all is sent that is not yet; to be asked for only then.
  void when_sent(Next next) { drainer_ = next; }

  /// Queues a frame, to be sent by the next flush() with whatever else is queued by then. One frame may always wait; a
  /// client for which more than the outbox limit would, and whose socket takes nothing, is given up and counted. True
  /// when a flush() is to be called that was not before.
  bool post(const SharedFrame& frame);
  void flush();

  /// When `duration` has passed, or at once when the peer resets, which gives it up.
  void when_passed(std::chrono::nanoseconds duration, Next next);

  bool broken() const { return broken_; }
  /// Nothing can be sent any more: all waits end.
  void give_up();

  Effects effects;
  bool member = true;     // of the chat: broadcasts reach it
  std::size_t index = 0;  // in the Roster

 protected:
  ~EpollConnection() = default;

 private:
  struct Part {
    std::string_view bytes;
    SharedFrame keeps = {};
    bool ends_frame() const {
      return keeps && bytes.data() + bytes.size() == keeps->bytes.data() + keeps->bytes.size();
    }
  };

  void on_events(std::uint32_t events) final;
  bool has_room_for(const Frame& frame) const {
    return outbox_held_ == 0 || outbox_held_ + held_for(frame) <= options_.outbox_limit;
  }
  ssize_t read(std::span<char> buffer);
  void queue(Part part);
  ssize_t write_some();
  void note_taken(std::size_t bytes);
  void wake(Next& waiting) {
    if (waiting) loop_.call_soon(std::exchange(waiting, Next{}));
  }

  const UniqueFd fd_;
  Loop<Next>& loop_;
  const ServerOptions& options_;
  Counters& counters_;
  const std::unique_ptr<Session> session_;
  Fifo<Part> outbox_;
  std::size_t outbox_held_ = 0;  // bytes that wait, and what it takes to keep frames
  bool readable_ = false;
  bool ended_ = false;  // the peer will send no more: what can be read ends with a 0
  bool writable_ = true;
  bool flush_due_ = false;
  bool broken_ = false;
  bool reset_ = false;  // by the peer
  Next reader_{};       // waits for input
  Next drainer_{};      // waits for the outbox to be empty
  Next sleeper_{};      // waits, or has waited, for its alarm
  Alarm alarm_{};
};

template <Continuation Next>
void EpollConnection<Next>::on_events(std::uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) ended_ = true;
  if ((events & (EPOLLIN | EPOLLERR)) != 0 || ended_) readable_ = true;
  if (readable_) wake(reader_);
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    reset_ = true;  // as this side has not ended its stream
    if (sleeper_ && loop_.cancel(alarm_)) {
      give_up();
      wake(sleeper_);
    }
  }
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    writable_ = true;
    flush();
  }
}

template <Continuation Next>
void EpollConnection<Next>::when_passed(std::chrono::nanoseconds duration, Next next) {
  if (reset_) give_up();
  if (broken_) return loop_.call_soon(next);
  sleeper_ = next;
  alarm_ = loop_.call_at(Poller::Clock::now() + duration, next);
}

template <Continuation Next>
void EpollConnection<Next>::receive(std::span<char> buffer) {
  effects.clear();
  if (broken_) return;
  const ssize_t n = read(buffer);
  if (n > 0) {
    session_->receive({buffer.data(), static_cast<std::size_t>(n)}, effects);
  } else if (n == 0) {
    session_->end(effects);
  } else if (errno != EAGAIN && errno != EINTR) {
    give_up();
  }
}

template <Continuation Next>
ssize_t EpollConnection<Next>::read(std::span<char> buffer) {
  const ssize_t n = recv(fd(), buffer.data(), buffer.size(), 0);
  // A short read emptied the socket (epoll(7), question 9), so the next edge tells; but after the end there is none.
  if (n < 0) readable_ = errno != EAGAIN;
  if (n >= 0 && static_cast<std::size_t>(n) < buffer.size()) readable_ = n > 0 && ended_;
  return n;
}

template <Continuation Next>
bool EpollConnection<Next>::post(const SharedFrame& frame) {
  if (!member || broken_) return false;
  if (!has_room_for(*frame)) {
    writable_ = true;  // as far as is known: since epoll was asked, the client may have read
    flush();
  }
  if (!has_room_for(*frame)) {
    counters_.add_slow_closed();
    give_up();
  }
  for_each_part(*frame, options_.write_mode, [&](std::string_view bytes) { queue({bytes, frame}); });
  outbox_held_ += frame_overhead;
  return writable_ && !broken_ && !std::exchange(flush_due_, true);
}

template <Continuation Next>
void EpollConnection<Next>::queue(Part part) {
  if (broken_) return;
  outbox_held_ += part.bytes.size();
  outbox_.push(std::move(part));
}

template <Continuation Next>
void EpollConnection<Next>::flush() {
  flush_due_ = false;
  while (writable_ && !outbox_.empty()) {
    const ssize_t n = write_some();
    if (n >= 0) {
      note_taken(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      writable_ = false;  // an edge follows, as the kernel now knows that the space is needed
    } else if (errno != EINTR) {
      return give_up();
    }
  }
  if (outbox_.empty()) wake(drainer_);
}

/// One system call: all that is queued (gathered and joined), or the part at the front (split, or single).
template <Continuation Next>
ssize_t EpollConnection<Next>::write_some() {
  std::array<iovec, max_gathered> parts;
  const std::size_t count =
      std::min(max_frames_in_a_write(options_.write_mode, options_.delivery_mode()), outbox_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes = outbox_[i].bytes;
    parts[i] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return writev(fd(), parts.data(), static_cast<int>(count));
}

template <Continuation Next>
void EpollConnection<Next>::note_taken(std::size_t bytes) {
  counters_.add_bytes_out(bytes);
  outbox_held_ -= bytes;
  while (bytes > 0 && bytes >= outbox_[0].bytes.size()) {
    const Part sent = outbox_.pop();
    bytes -= sent.bytes.size();
    if (sent.ends_frame()) outbox_held_ -= frame_overhead;
  }
  if (bytes > 0) outbox_[0].bytes.remove_prefix(bytes);
}

template <Continuation Next>
void EpollConnection<Next>::give_up() {
  broken_ = true;
  outbox_.clear();
  outbox_held_ = 0;
  wake(reader_);
  wake(drainer_);
}

}  // namespace netdyno
