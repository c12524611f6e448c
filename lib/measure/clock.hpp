#pragma once

#include <cstdint>
#include <ctime>
#include <limits>

namespace netdyno::load {

/// A moment on CLOCK_MONOTONIC, or a span of time, in nanoseconds.
using Nanos = std::int64_t;

inline constexpr Nanos never = std::numeric_limits<Nanos>::max();
inline constexpr Nanos one_second = 1'000'000'000;

inline Nanos now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * one_second + now.tv_nsec;
}

inline double seconds(Nanos span) { return static_cast<double>(span) / static_cast<double>(one_second); }

/// How much of an amount comes on each second of a span; 0 of a span that has not begun.
inline double per_second(double amount, Nanos span) { return span > 0 ? amount / seconds(span) : 0; }

}  // namespace netdyno::load
