#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/measure/clock.hpp"
#include "lib/measure/histogram.hpp"

namespace netdyno::load {

/// Completions of all threads in each interval of the window. Each thread delivers its share of a slot when the slot is
/// over; a slot that all have delivered is reduced to four numbers, so that an hour costs little more than a megabyte,
/// and percentiles come from merged histograms all the same. Any thread may call it.
class Timeline {
 public:
  /// 100 ms; in a window of less than 2 s the longest multiple of 5 ms of which it has 20, as what judges the series
  /// wants some points, but not less than 5 ms.
  static constexpr Nanos interval_of(Nanos duration) {
    constexpr Nanos step = 5'000'000, longest = 100'000'000, points = 20;
    return std::clamp(duration / points / step * step, step, longest);
  }

  struct Slot {
    std::uint64_t completed = 0;
    std::optional<std::int64_t> p50_ns;  // nothing where nothing was completed
    std::optional<std::int64_t> p99_ns;
    std::uint64_t errors = 0;
    std::string histogram;  // encoded, where it is kept
  };

  /// `keeps` the histogram of each slot, for a caller that adds those of several programs.
  Timeline(Nanos duration, std::size_t threads, bool keeps = false)
      : interval_(interval_of(duration)),
        threads_(threads),
        keeps_(keeps),
        slots_(static_cast<std::size_t>((duration + interval_ - 1) / interval_)) {}

  Nanos interval() const { return interval_; }
  std::size_t size() const { return slots_.size(); }

  /// Each thread calls it once for each slot, in order.
  void deliver(std::size_t slot, const Histogram& responses, std::uint64_t errors);

  std::vector<Slot> slots() const;
  /// Forgets all slots, for a window of the same length. While no thread delivers.
  void clear();
  /// The last slot that all threads have delivered.
  Slot latest() const;

 private:
  struct OpenSlot {
    Histogram responses;
    std::uint64_t errors = 0;
    std::size_t delivered = 0;
  };

  mutable std::mutex mutex_;
  Nanos interval_;
  std::size_t threads_;
  bool keeps_;
  std::vector<Slot> slots_;
  std::map<std::size_t, OpenSlot> open_;  // slots that a thread has not delivered yet
  std::size_t done_ = 0;
};

}  // namespace netdyno::load
