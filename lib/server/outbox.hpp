#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/session/effects.hpp"

namespace netdyno {

/// Frames that wait for one reader, bounded in bytes, for servers that write without blocking. `Buffer` is what the
/// server's way of writing takes: made from an address and a size. One thread at a time may call it.
template <typename Buffer>
class Outbox {
 public:
  Outbox(WriteMode mode, std::size_t limit) : mode_(mode), limit_(limit) {}

  /// False, and nothing is taken, when more than the limit would wait: the reader is slow. One frame is always taken.
  bool push(SharedFrame frame) {
    const std::size_t size = frame->bytes.size();
    if (bytes_ > 0 && (size > limit_ || bytes_ > limit_ - size)) return false;
    bytes_ += size;
    waiting_.push_back(std::move(frame));
    return true;
  }

  /// Nothing waits and nothing is being sent.
  bool empty() const { return bytes_ == 0; }

  /// What to send next, in one write; empty when nothing waits. Valid until all of it is `sent()`.
  std::span<const Buffer> next() {
    if (unsent_.empty()) load();
    return unsent_.first(next_size());
  }

  /// All `bytes` of the last `next()` are written.
  void sent(std::size_t bytes) {
    bytes_ -= bytes;
    unsent_ = unsent_.subspan(next_size());
  }

 private:
  /// As many as asio hands to one sendmsg(2); beyond that, gathering more saves next to nothing.
  static constexpr std::size_t max_gathered = 64;

  std::size_t next_size() const { return std::min(unsent_.size(), mode_ == WriteMode::split ? 1 : max_gathered); }

  void load() {
    sending_.clear();
    parts_.clear();
    sending_.swap(waiting_);
    for (const auto& frame : sending_)
      for_each_part(*frame, mode_, [this](std::string_view part) {
        parts_.push_back(Buffer{const_cast<char*>(part.data()), part.size()});
      });
    unsent_ = parts_;
  }

  WriteMode mode_;
  std::size_t limit_;
  std::size_t bytes_ = 0;             // that wait or are unsent
  std::vector<SharedFrame> waiting_;  // for sending_ to be sent
  std::vector<SharedFrame> sending_;  // owns the bytes of parts_
  std::vector<Buffer> parts_;
  std::span<const Buffer> unsent_;  // the rest of parts_
};

}  // namespace netdyno
