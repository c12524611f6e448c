#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace netdyno {

/// "250us", "5ms", "1.5s", "2m", "0"; nothing when the text is not a duration. A bare number other than 0 has no unit
/// and is refused, so that no unit has to be guessed.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous).
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Bits per second: "9600bit", "100kbit", "10mbit", "1gbit", in the decimal units of tc(8); above 0.
std::optional<std::uint64_t> parse_bit_rate(std::string_view text);

}  // namespace netdyno
