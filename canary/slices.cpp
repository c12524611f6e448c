#include "canary/slices.hpp"

#include <algorithm>
#include <numeric>

namespace netdyno::canary {

PerSecond compute_rates(std::size_t per_slice, std::vector<std::chrono::nanoseconds> slices) {
  using Seconds = std::chrono::duration<double>;
  const Seconds all = std::accumulate(slices.begin(), slices.end(), std::chrono::nanoseconds{0});
  const auto middle = slices.begin() + static_cast<std::ptrdiff_t>(slices.size() / 2);
  std::nth_element(slices.begin(), middle, slices.end());
  const auto work = static_cast<double>(per_slice);
  return {.typical = work / Seconds{*middle}.count(),
          .overall = work * static_cast<double>(slices.size()) / all.count()};
}

}  // namespace netdyno::canary
