#include "lib/measure/histogram.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "lib/measure/bytes.hpp"

namespace netdyno {
namespace {

// The V2 format: HdrHistogram's EncodableHistogram (Java) and the codec of the PyPI package. 0x10 marks "no fixed word
// size" (ZigZag LEB128).
constexpr std::uint32_t v2_cookie = 0x1c849303 | 0x10;
constexpr std::uint32_t v2_compressed_cookie = 0x1c849304 | 0x10;

/// The format's LEB128 has at most 9 bytes: the ninth carries eight bits.
void append_zigzag(std::string& out, std::int64_t number) {
  auto value = (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
  for (int i = 0; i < 8 && value >= 0x80; ++i, value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// A run of n zeros is the number -n.
std::string encode_counts(const std::vector<std::uint64_t>& counts, std::size_t end) {
  std::string out;
  for (std::size_t i = 0; i < end;) {
    std::size_t next = i;
    while (next < end && counts[next] == 0) ++next;
    if (next > i) {
      append_zigzag(out, -static_cast<std::int64_t>(next - i));
      i = next;
    } else {
      append_zigzag(out, static_cast<std::int64_t>(counts[i++]));
    }
  }
  return out;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int status =
      compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (status != Z_OK) throw std::runtime_error("zlib cannot compress a histogram: error " + std::to_string(status));
  out.resize(size);
  return out;
}

}  // namespace

void Histogram::refuse_negative(std::int64_t value) {
  std::fprintf(stderr, "a histogram was given the negative duration %lld ns\n", static_cast<long long>(value));
  std::abort();
}

void Histogram::grow(std::size_t index) {
  counts_.resize(std::min(all_counts, std::max(index + 1, counts_.size() * 2)));
}

// Empty ones are common: a time series has one for every interval in which nothing came, thousands where a long run is
// ended early.
void Histogram::add(const Histogram& other) {
  if (other.count_ == 0) return;
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

void Histogram::clear() {
  if (count_ == 0) return;
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = 0;
  sum_ = 0;
}

double Histogram::mean() const { return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_); }

std::int64_t Histogram::max() const { return find_percentile(100); }

std::uint64_t Histogram::count_up_to(std::int64_t value) const {
  const std::size_t end = std::min(index_of(value) + 1, counts_.size());
  return std::accumulate(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(end), std::uint64_t{0});
}

std::int64_t Histogram::find_percentile(double percentile) const {
  if (count_ == 0) return 0;
  const auto needed = static_cast<std::uint64_t>(std::min(percentile, 100.0) * static_cast<double>(count_) / 100 + 0.5);
  const auto rank = std::max<std::uint64_t>(needed, 1);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return highest_equivalent(i);
  }
  return 0;
}

std::int64_t Histogram::highest_equivalent(std::size_t index) {
  if (index < 2 * half) return static_cast<std::int64_t>(index);
  const std::size_t bucket = index / half - 1;
  const std::size_t sub_bucket = index % half + half;
  return (static_cast<std::int64_t>(sub_bucket + 1) << bucket) - 1;
}

std::string Histogram::encode() const {
  std::size_t end = counts_.size();
  while (end > 0 && counts_[end - 1] == 0) --end;
  const std::string counts = encode_counts(counts_, end);

  std::string payload;
  append_big_endian(payload, v2_cookie);
  append_big_endian(payload, static_cast<std::uint32_t>(counts.size()));
  append_big_endian(payload, std::uint32_t{0});  // normalising index offset
  append_big_endian(payload, static_cast<std::uint32_t>(significant_digits));
  append_big_endian(payload, static_cast<std::uint64_t>(lowest));
  append_big_endian(payload, static_cast<std::uint64_t>(highest));
  append_big_endian(payload, std::bit_cast<std::uint64_t>(1.0));  // integer to double conversion ratio
  const std::string body = deflated(payload + counts);

  std::string out;
  append_big_endian(out, v2_compressed_cookie);
  append_big_endian(out, static_cast<std::uint32_t>(body.size()));
  return encode_base64(out + body);
}

}  // namespace netdyno
