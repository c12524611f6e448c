#include "lib/measure/deliveries.hpp"

namespace netdyno::load {

bool Deliveries::was_missing(std::size_t pair, std::uint64_t sequence) {
  const auto found = missing_.find(pair);
  if (found == missing_.end()) return false;
  Ranges& ranges = found->second;
  auto range = ranges.upper_bound(sequence);
  if (range == ranges.begin()) return false;
  --range;
  const auto [first, end] = *range;
  if (sequence >= end) return false;
  ranges.erase(range);
  if (first < sequence) ranges.emplace(first, sequence);
  if (sequence + 1 < end) ranges.emplace(sequence + 1, end);
  if (ranges.empty()) missing_.erase(found);
  return true;
}

}  // namespace netdyno::load
