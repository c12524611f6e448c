#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// Decides which reads ask for a stamp: some, drawn at random, so that no order of the connections makes the choice.
/// That makes a read about 0.3 us longer, which at `samples_per_second` is 0.3% of the thread's core
/// (docs/adr/kernel-clock.md). Owning thread only.
class ReadSampler {
 public:
  static constexpr std::uint64_t samples_per_second = 10'000;

  /// `every`: each read asks, however many there are.
  explicit ReadSampler(std::uint64_t seed, bool every = false) : every_(every), random_(seed * 2 + 1) { draw(); }

  /// Once for each read: whether this one asks.
  bool take() {
    if (--left_ > 0) return every_;
    draw();
    return true;
  }

  /// Chooses how many reads ask, from how many there were since the last call. The mean gap between two that do; it
  /// stays as it is where there was no `span` to count in.
  std::uint64_t settle(Nanos span) {
    const std::uint64_t reads = drawn_ - left_;
    if (span > 0) mean_gap_ = gap_at(static_cast<double>(reads) / seconds(span));
    drawn_ = 0;
    draw();
    return mean_gap_;
  }

 private:
  static std::uint64_t gap_at(double reads_per_second) {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(reads_per_second / samples_per_second)));
  }

  void draw() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX
    left_ = 1 + (random_ >> 33) % (2 * mean_gap_ - 1);
    drawn_ += left_;
  }

  bool every_;
  std::uint64_t random_;
  std::uint64_t mean_gap_ = 16;
  std::uint64_t left_ = 0;   // reads to the next that asks
  std::uint64_t drawn_ = 0;  // reads since settle(), when those are over
};

}  // namespace netdyno::load
