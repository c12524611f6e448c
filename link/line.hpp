#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "link/plan.hpp"

namespace netdyno::link {

using Clock = std::chrono::steady_clock;

/// The fate of a frame at the beginning of the link.
enum class Fate {
  carried,
  lost,
  queue_full,  // too much waited for the rate: what a link with a rate does
  overflowed   // more were on the link than it has memory for: what no link does
};

/// One direction of a link: which frames it carries, and when each is due at its other end. It keeps their order, asks
/// no clock, and has all its memory from the beginning: a frame is read into it and written from it in one place.
class Line {
 public:
  /// The bytes of an Ethernet frame with an MTU of 1500 bytes, and room to see that one is longer.
  static constexpr std::size_t most_frame_bytes = 1518;
  static constexpr std::size_t slot_bytes = 2048;

  /// `direction` gives each direction of a link losses of its own from the same seed.
  Line(const Terms& terms, std::uint64_t direction);

  /// Touches the memory of the first `frames`, so that not even they wait for a page.
  void warm_up(std::size_t frames);

  /// Where the next frame is to be put, before `take`.
  std::span<char> space();
  /// Takes the `size` bytes in space() as a frame that came at `now`. Moments must not go back.
  Fate take(std::size_t size, Clock::time_point now);

  std::size_t held() const { return held_; }
  /// When the first frame is due. Only where one is held.
  Clock::time_point due() const { return ring_[first_].due; }
  std::string_view frame() const;
  /// Lets go of the first frame.
  void pop();

 private:
  struct Entry {
    Clock::time_point due;
    std::uint32_t slot;
    std::uint32_t size;
  };

  bool draw_loss() { return randomness_() < loss_below_; }
  /// The bytes that wait for the rate before a frame that comes now.
  std::uint64_t compute_backlog(Clock::time_point now) const;
  /// When a frame that comes now has left the sender.
  Clock::time_point transmit(std::size_t size, Clock::time_point now);
  std::uint32_t take_free_slot();
  char* bytes_of(std::uint32_t slot) { return slots_.get() + slot * slot_bytes; }
  const char* bytes_of(std::uint32_t slot) const { return slots_.get() + slot * slot_bytes; }

  Terms terms_;
  std::mt19937_64 randomness_;
  std::uint64_t loss_below_;     // of a drawn number
  Clock::time_point idle_at_{};  // when the last frame has left the sender, where there is a rate
  std::vector<Entry> ring_;      // the held frames, in their order
  std::size_t first_ = 0;
  std::size_t held_ = 0;
  std::unique_ptr<char[]> slots_;  // not touched before it is used, so that a long line costs nothing while it is empty
  std::vector<std::uint32_t> free_;  // slots that were used, the latest on top: it is still in the cache
  std::uint32_t untouched_ = 0;      // slots from here on were never used
  std::uint32_t next_;               // the slot of space()
};

}  // namespace netdyno::link
