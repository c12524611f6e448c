#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/send.hpp"
#include "lib/server/fifo.hpp"
#include "lib/session/effects.hpp"

namespace netdyno {

/// The bytes that a waiting frame counts beside its own, in every server (protocol/WIRE.md): a frame of one byte takes
/// far more than that to keep.
inline constexpr std::size_t frame_overhead = 128;

/// The size that a frame counts against an outbox limit.
inline std::size_t held_for(const Frame& frame) { return frame.bytes.size() + frame_overhead; }

/// As many buffers as asio hands to one sendmsg(2); beyond that, gathering more saves next to nothing.
inline constexpr std::size_t max_gathered = 64;

/// How many frames that wait for one reader leave in one write.
inline std::size_t max_frames_in_a_write(WriteMode mode, DeliveryMode deliveries) {
  return mode == WriteMode::split || deliveries == DeliveryMode::single ? 1 : max_gathered;
}

/// Frames that wait for one reader, bounded in what they hold, for servers that write without blocking. `Buffer` is
/// what the server's way of writing takes: made from an address and a size. One thread at a time may call it.
template <typename Buffer>
class Outbox {
 public:
  /// Frames leave together (joined) or each in a write of its own (single); in mode split each of a frame's parts does.
  Outbox(WriteMode mode, DeliveryMode deliveries, std::size_t limit)
      : mode_(mode), max_frames_(max_frames_in_a_write(mode, deliveries)), limit_(limit) {}

  /// False, and nothing is taken, when more than the limit would wait: the reader is slow. One frame is always taken.
  bool push(SharedFrame frame) {
    const std::size_t size = held_for(*frame);
    if (held_ > 0 && (size > limit_ || held_ > limit_ - size)) return false;
    push_beyond(std::move(frame));
    return true;
  }
  /// Ignores the limit: for a reader that reads, where the server is behind. Senders must then wait.
  void push_beyond(SharedFrame frame) {
    held_ += held_for(*frame);
    frames_.push(std::move(frame));
  }
  /// As push(), and beyond the limit for a reader whose socket takes more (protocol/WIRE.md).
  bool push_unless_stuck(const SharedFrame& frame, int fd) {
    if (push(frame)) return true;
    if (!takes_more(fd)) return false;
    push_beyond(frame);
    return true;
  }

  /// So much is queued that senders must wait, unless the reader does not read.
  bool much() const { return held_ > limit_ / 2; }

  /// Nothing waits and nothing is being sent.
  bool empty() const { return frames_.empty(); }

  /// The bytes to send next, in one write; empty when nothing waits. Valid until all of it is `sent()`.
  std::span<const Buffer> next() {
    if (parts_.empty()) load();
    return std::span{parts_}.subspan(parts_sent_, next_size());
  }

  /// All `bytes` of the last `next()` are written.
  void sent(std::size_t bytes) {
    held_ -= bytes;
    parts_sent_ += next_size();
    if (parts_sent_ < parts_.size()) return;
    held_ -= sending_ * frame_overhead;
    for (; sending_ > 0; --sending_) frames_.pop();
    parts_.clear();
    parts_sent_ = 0;
  }

 private:
  std::size_t next_size() const {
    return mode_ == WriteMode::split ? std::min<std::size_t>(parts_.size(), 1) : parts_.size();
  }

  void load() {
    sending_ = std::min(frames_.size(), max_frames_);
    for (std::size_t i = 0; i < sending_; ++i)
      for_each_part(*frames_[i], mode_, [this](std::string_view part) {
        parts_.push_back(Buffer{const_cast<char*>(part.data()), part.size()});
      });
  }

  WriteMode mode_;
  std::size_t max_frames_;  // in one write
  std::size_t limit_;
  std::size_t held_ = 0;
  Fifo<SharedFrame> frames_;  // the first of them, `sending_`, own the bytes of parts_
  std::size_t sending_ = 0;
  std::vector<Buffer> parts_;
  std::size_t parts_sent_ = 0;
};

}  // namespace netdyno
