#pragma once

#include <cstdint>
#include <limits>

namespace netdyno::load {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), as a generator of <random>:
/// a tenth of the cost of a Mersenne Twister, and as cheap to begin as to go on with.
class SplitMix64 {
 public:
  using result_type = std::uint64_t;
  static constexpr result_type gamma = 0x9e3779b97f4a7c15U;

  explicit SplitMix64(result_type seed) : state_(seed) {}
  /// That of one member of the sequence which `seed` begins: so many were taken before.
  SplitMix64(result_type seed, result_type taken) : SplitMix64(seed + gamma * taken) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    result_type x = (state_ += gamma);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

 private:
  result_type state_;
};

}  // namespace netdyno::load
