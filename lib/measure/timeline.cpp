#include "lib/measure/timeline.hpp"

namespace netdyno::load {

void Timeline::deliver(std::size_t slot, const Histogram& responses, std::uint64_t errors) {
  const std::lock_guard lock{mutex_};
  OpenSlot& merged = open_[slot];
  merged.responses.add(responses);
  merged.errors += errors;
  if (++merged.delivered < threads_) return;
  const auto percentile = [&merged](double percent) {
    return merged.responses.count() > 0 ? std::optional{merged.responses.find_percentile(percent)} : std::nullopt;
  };
  slots_[slot] = {merged.responses.count(), percentile(50), percentile(99), merged.errors,
                  keeps_ ? merged.responses.encode() : std::string{}};
  open_.erase(slot);
  done_ = slot + 1;
}

std::vector<Timeline::Slot> Timeline::slots() const {
  const std::lock_guard lock{mutex_};
  return slots_;
}

void Timeline::clear() {
  const std::lock_guard lock{mutex_};
  std::ranges::fill(slots_, Slot{});
  done_ = 0;
}

Timeline::Slot Timeline::latest() const {
  const std::lock_guard lock{mutex_};
  return done_ == 0 ? Slot{} : slots_[done_ - 1];
}

}  // namespace netdyno::load
