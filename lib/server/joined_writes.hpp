#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "lib/server/outbox.hpp"
#include "lib/session/effects.hpp"

namespace netdyno {

/// Frames for one recipient that leave together, for servers whose writes block: calls `send(std::span<iovec>)` once
/// for each write, of up to max_gathered frames (gathered), or of a part of one (split). The frames must stay until
/// flush().
template <typename Send>
class JoinedWrites {
 public:
  JoinedWrites(WriteMode mode, Send send)
      : mode_(mode), max_parts_(max_frames_in_a_write(mode, DeliveryMode::joined)), send_(std::move(send)) {}

  void add(const Frame& frame) {
    for_each_part(frame, mode_, [this](std::string_view bytes) {
      if (count_ == max_parts_) flush();
      parts_[count_++] = part_of(bytes);
    });
  }

  void flush() {
    if (count_ > 0) send_(std::span{parts_}.first(std::exchange(count_, 0)));
  }

 private:
  const WriteMode mode_;
  const std::size_t max_parts_;  // of one write
  Send send_;
  std::array<iovec, max_gathered> parts_;
  std::size_t count_ = 0;
};

}  // namespace netdyno
