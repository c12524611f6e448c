#include "link/line.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace netdyno::link {
namespace {

/// A share of all the numbers that a generator of 64 bits draws.
std::uint64_t share_of_draws(double share) { return static_cast<std::uint64_t>(std::ldexp(share, 64)); }

std::mt19937_64 make_randomness(std::uint64_t seed, std::uint64_t direction) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(direction)};
  return std::mt19937_64{words};
}

}  // namespace

Line::Line(const Terms& terms, std::uint64_t direction)
    : terms_(terms),
      randomness_(make_randomness(terms.seed, direction)),
      loss_below_(share_of_draws(terms.loss)),
      ring_(terms.limit),
      slots_(std::make_unique_for_overwrite<char[]>((terms.limit + 1) * slot_bytes)),
      next_(untouched_++) {
  free_.reserve(terms.limit + 1);
}

void Line::warm_up(std::size_t frames) { std::memset(slots_.get(), 0, std::min(frames, ring_.size()) * slot_bytes); }

std::span<char> Line::space() { return {bytes_of(next_), slot_bytes}; }

/// In the order of netem (net/sched/sch_netem.c): what is lost takes no time and no room.
Fate Line::take(std::size_t size, Clock::time_point now) {
  if (draw_loss()) return Fate::lost;
  if (held_ == ring_.size()) return Fate::overflowed;
  if (compute_backlog(now) + size > terms_.queue_bytes) return Fate::queue_full;
  ring_[(first_ + held_) % ring_.size()] = {transmit(size, now) + terms_.delay, next_,
                                            static_cast<std::uint32_t>(size)};
  ++held_;
  next_ = take_free_slot();
  return Fate::carried;
}

std::string_view Line::frame() const {
  const Entry& entry = ring_[first_];
  return {bytes_of(entry.slot), entry.size};
}

void Line::pop() {
  free_.push_back(ring_[first_].slot);
  first_ = (first_ + 1) % ring_.size();
  --held_;
}

std::uint64_t Line::compute_backlog(Clock::time_point now) const {
  if (terms_.rate_hz == 0 || idle_at_ <= now) return 0;
  const double waiting_s = std::chrono::duration<double>(idle_at_ - now).count();
  return static_cast<std::uint64_t>(waiting_s * static_cast<double>(terms_.rate_hz) / 8);
}

/// With a rate, frames leave the sender one after the other, and each takes its time.
Clock::time_point Line::transmit(std::size_t size, Clock::time_point now) {
  if (terms_.rate_hz == 0) return now;
  constexpr std::uint64_t bits_ns = 8'000'000'000;  // bits of a byte x nanoseconds of a second
  const std::uint64_t ns = (size * bits_ns + terms_.rate_hz - 1) / terms_.rate_hz;
  idle_at_ = std::max(idle_at_, now) + std::chrono::nanoseconds{ns};
  return idle_at_;
}

std::uint32_t Line::take_free_slot() {
  if (free_.empty()) return untouched_++;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace netdyno::link
