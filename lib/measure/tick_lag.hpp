#pragma once

#include "lib/measure/clock.hpp"
#include "lib/measure/histogram.hpp"

namespace netdyno {

/// How late the ticks of a 10 ms timer are, on an absolute schedule. The timer stands in the loop of an application,
/// and shows whether something blocks that loop. One thread only.
class TickLag {
 public:
  static constexpr load::Nanos interval = 10'000'000;

  /// The first tick is due an interval after `start`.
  explicit TickLag(load::Nanos start) : due_(start + interval) {}

  load::Nanos due() const { return due_; }
  /// Every tick that was due counts, also those that one long block has swallowed.
  void record(load::Nanos now) {
    for (; due_ <= now; due_ += interval) lag_.record(now - due_);
  }
  /// In nanoseconds.
  const Histogram& lag() const { return lag_; }

 private:
  load::Nanos due_;
  Histogram lag_;
};

}  // namespace netdyno
