#pragma once

#include <cstdint>
#include <limits>

#include "lib/measure/stamp.hpp"

namespace netdyno::load {

/// Chance that belongs to one message: the same whenever that is written, and another's in every thread. SplitMix64
/// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), as a generator of <random>.
class RandomOf {
 public:
  using result_type = std::uint64_t;
  RandomOf(std::uint64_t seed, const Stamp& stamp)
      : state_(mix(mix(mix(seed + gamma) + gamma * (stamp.client + 1ULL)) + gamma * (stamp.sequence + 1))) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return mix(state_ += gamma); }

 private:
  static constexpr std::uint64_t gamma = 0x9e3779b97f4a7c15U;
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace netdyno::load
