#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "lib/net/send.hpp"
#include "lib/server/outbox.hpp"

namespace netdyno {

/// The backlog of frames that this server has not yet sent to one reader whose socket takes more. Senders wait then,
/// and the reader is not slow for that (protocol/WIRE.md). For servers where a frame goes to the outbox's thread first,
/// and where what the kernel takes is known a turn later.
class SendBacklog {
 public:
  /// How long a sender waits before it checks again whether a reader is behind.
  static constexpr std::chrono::microseconds a_while{100};

  explicit SendBacklog(std::size_t limit) : limit_(limit) {}

  /// Any thread.
  bool any() const { return behind_ || on_way_ > limit_ / 2; }

  /// Any thread. A frame is sent off to the outbox; it is `note_arrived` there before it is pushed.
  void note_posted(const Frame& frame) { on_way_ += held_for(frame); }
  void note_arrived(const Frame& frame) { on_way_ -= held_for(frame); }

  /// The outbox's thread. False, and nothing is taken, where more than the limit would wait for a reader that does
  /// not read: it is slow.
  template <typename Buffer>
  bool push(Outbox<Buffer>& outbox, const SharedFrame& frame, int fd) {
    if (!outbox.push_unless_stuck(frame, fd)) return false;
    if (outbox.much()) check(outbox, fd);
    return true;
  }

  /// The outbox's thread. Checks whether that is still so; it is not for a reader that is gone, with descriptor -1.
  template <typename Buffer>
  void check(const Outbox<Buffer>& outbox, int fd) {
    behind_ = outbox.much() && takes_more(fd);
  }

  /// The outbox's thread. The reader is gone.
  void clear() { behind_ = false; }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> on_way_ = 0;  // held by frames that are not in the outbox yet
  std::atomic<bool> behind_ = false;
};

}  // namespace netdyno
