#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/measure/clock.hpp"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace netdyno::load {

/// CLOCK_MONOTONIC for a loop that needs the time twice with every message: some 50 of the 270 ns that it spends beside
/// system calls, of which this saves half (bench/record_cost --benchmark_filter=clock). Once a turn it asks the system;
/// in between it goes on by the processor's counter, from which Linux makes that clock as well. Where Linux does not
/// (clocksource other than tsc), it asks the system every time. Never goes back. Owning thread only.
class LoopClock {
 public:
  /// Whether Linux makes CLOCK_MONOTONIC from the counter that this class reads.
  static bool counter_is_the_clock();

  explicit LoopClock(bool counting = counter_is_the_clock()) : counting_(counting) {}

  /// Asks the system. Once a turn of the loop: the counter's rate is known to a few millionths, so what `now` says of a
  /// turn of a millisecond is right to a few nanoseconds.
  Nanos turn();

  Nanos now() {
    const std::uint64_t passed = counter() - turn_counter_;
    if (rate_ == 0 || passed > longest_turn) return turn();
    return latest_ = std::max(latest_, turn_at_ + static_cast<Nanos>(passed * rate_ >> rate_bits));
  }

 private:
  static constexpr int rate_bits = 32;
  static constexpr std::uint64_t longest_turn = 1ULL << 30;  // some 300 ms; the product above stays below 2^64

  static std::uint64_t counter() {
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
  }

  bool counting_;
  std::uint64_t rate_ = 0;  // nanoseconds a count, times 2^rate_bits; 0: not known, ask the system
  std::uint64_t turn_counter_ = 0;
  Nanos turn_at_ = 0;
  Nanos latest_ = 0;
  // Where the rate is measured from.
  std::uint64_t base_counter_ = 0;
  Nanos base_at_ = 0;
  std::uint64_t measured_rate_ = 0;
};

}  // namespace netdyno::load
