#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netdyno {

/// A log-linear histogram of nanoseconds (HdrHistogram by Gil Tene): 1 ns to 1 h with 3 significant digits, which is a
/// relative error below 0.1%. One thread at a time may use it; histograms of several threads are merged with `add`.
class Histogram {
 public:
  static constexpr std::int64_t lowest = 1;
  static constexpr std::int64_t highest = 3'600'000'000'000;
  static constexpr int significant_digits = 3;

  /// Adds one value in nanoseconds. Above `highest` it counts as `highest`. A negative value is a defect of the caller
  /// and ends the program: a wrong latency must not become part of a result.
  void record(std::int64_t value) {
    if (value < 0) refuse_negative(value);
    if (value > highest) value = highest;
    const std::size_t index = index_of(value);
    if (index >= counts_.size()) grow(index);
    ++counts_[index];
    ++count_;
    sum_ += static_cast<std::uint64_t>(value);
  }

  void add(const Histogram& other);
  /// Empty again; keeps its memory.
  void clear();

  std::uint64_t count() const { return count_; }
  /// The count of values that the histogram does not distinguish from `value`, and of those below.
  std::uint64_t count_up_to(std::int64_t value) const;
  /// The exact mean of what was recorded; 0 when empty.
  double mean() const;
  /// The largest value, as the histogram knows it (rounded up by less than 0.1%, as the percentiles are, so that no
  /// percentile is above it); 0 when empty.
  std::int64_t max() const;
  /// The value that `percentile` (0 to 100) of all values do not exceed; 0 when empty. Rounds as the PyPI package
  /// `hdrhistogram` does, so that both read the same from one encoding.
  std::int64_t find_percentile(double percentile) const;

  /// The HdrHistogram V2 format: compressed with zlib, in base64.
  std::string encode() const;

 private:
  static constexpr int sub_bucket_bits = 11;  // 2048 linear steps in each doubling: 3 significant digits
  static constexpr std::size_t half = 1U << (sub_bucket_bits - 1);
  static constexpr std::size_t buckets = 32;  // 2048 << 31 is the first above `highest`
  static constexpr std::size_t all_counts = (buckets + 1) * half;

  static int bucket_of(std::int64_t value) {
    constexpr auto mask = (1ULL << sub_bucket_bits) - 1;
    return 64 - sub_bucket_bits - std::countl_zero(static_cast<std::uint64_t>(value) | mask);
  }
  static std::size_t index_of(std::int64_t value) {
    const int bucket = bucket_of(value);
    return static_cast<std::size_t>(bucket) * half + static_cast<std::size_t>(value >> bucket);
  }
  static std::int64_t highest_equivalent(std::size_t index);

  [[noreturn]] static void refuse_negative(std::int64_t value);
  void grow(std::size_t index);

  std::vector<std::uint64_t> counts_;  // as long as the largest value so far needs
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace netdyno
