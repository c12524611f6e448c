#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace netdyno::canary {

using Clock = std::chrono::steady_clock;

/// How often a second a piece of work is done, where each slice was so much of it. Wants one slice at least.
struct PerSecond {
  double typical;  // by the median slice: what interrupts fewer than half of them does not show in it
  double overall;  // by all of the time: what others take of the core does
};
PerSecond compute_rates(std::size_t per_slice, std::vector<std::chrono::nanoseconds> slices);

/// Does `slice` again and again for so long, and says how long each took. The first is for nothing: it finds caches,
/// clock and sleep states of the core as what ran before has left them. So two are done at least.
template <typename Slice>
std::vector<std::chrono::nanoseconds> measure_slices(std::chrono::nanoseconds how_long, Slice&& slice) {
  std::vector<std::chrono::nanoseconds> times;
  slice();
  Clock::time_point last = Clock::now();
  const Clock::time_point end = last + how_long;
  do {
    slice();
    const Clock::time_point now = Clock::now();
    times.push_back(now - std::exchange(last, now));
  } while (last < end);
  return times;
}

}  // namespace netdyno::canary
