#include "lib/cli/units.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace netdyno {
namespace {

template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto value = take_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  double unit_ns = 0;
  if (text == "ns") unit_ns = 1;
  if (text == "us") unit_ns = 1e3;
  if (text == "ms") unit_ns = 1e6;
  if (text == "s") unit_ns = 1e9;
  if (text == "m") unit_ns = 60e9;
  if (unit_ns == 0 && !(text.empty() && *value == 0)) return std::nullopt;
  const double nanoseconds = *value * unit_ns;
  if (nanoseconds > 9e18) return std::nullopt;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::llround(nanoseconds))};
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto value = take_number<std::uint64_t>(text);
  if (!value) return std::nullopt;
  std::uint64_t unit = 0;
  if (text.empty() || text == "B") unit = 1;
  if (text == "KiB") unit = 1ULL << 10;
  if (text == "MiB") unit = 1ULL << 20;
  if (text == "GiB") unit = 1ULL << 30;
  if (unit == 0 || *value > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return *value * unit;
}

std::optional<std::uint64_t> parse_bit_rate(std::string_view text) {
  const auto value = take_number<std::uint64_t>(text);
  if (!value || *value == 0) return std::nullopt;
  std::uint64_t unit = 0;
  if (text == "bit") unit = 1;
  if (text == "kbit") unit = 1'000;
  if (text == "mbit") unit = 1'000'000;
  if (text == "gbit") unit = 1'000'000'000;
  if (unit == 0 || *value > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return *value * unit;
}

}  // namespace netdyno
