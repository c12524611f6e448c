#include "common/stamp.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/crc32.hpp"

namespace netdyno {
namespace {

constexpr std::size_t client_digits = 8;     // hexadecimal, as the checksum's
constexpr std::size_t sequence_digits = 12;  // decimal
constexpr std::size_t checksum_digits = client_digits;
constexpr std::size_t checksum_at = client_digits + sequence_digits;
constexpr std::size_t alphabet = 26;

void write_hex(std::uint32_t value, char* out) {
  for (std::size_t i = client_digits; i > 0; --i, value >>= 4) out[i - 1] = "0123456789abcdef"[value & 15];
}

void write_decimal(std::uint64_t value, char* out) {
  // Two halves of 32 bits: their divisions do not wait for each other.
  constexpr std::size_t half = sequence_digits / 2;
  auto high = static_cast<std::uint32_t>(value / 1'000'000);
  auto low = static_cast<std::uint32_t>(value % 1'000'000);
  for (std::size_t i = half; i > 0; --i, high /= 10, low /= 10) {
    out[i - 1] = static_cast<char>('0' + high % 10);
    out[half + i - 1] = static_cast<char>('0' + low % 10);
  }
}

constexpr std::array<std::int8_t, 256> digit_values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 10; ++i) values[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
  for (int i = 0; i < 6; ++i) values[static_cast<std::size_t>('a' + i)] = static_cast<std::int8_t>(10 + i);
  return values;
}();

/// Nothing when a character is no lower-case digit of the base.
template <unsigned base>
std::optional<std::uint64_t> read_digits(std::string_view text) {
  std::uint64_t value = 0;
  bool good = true;
  for (const char c : text) {
    const auto digit = static_cast<unsigned>(digit_values[static_cast<unsigned char>(c)]);
    good &= digit < base;
    value = value * base + digit;
  }
  return good ? std::optional{value} : std::nullopt;
}

std::uint32_t checksum(std::string_view identity, std::string_view padding) {
  return crc32(crc32(0, identity), padding);
}

/// The alphabet over and over, so that padding is copied in long pieces and not made letter by letter.
constexpr std::size_t piece = alphabet * 40;
constexpr auto letters = [] {
  std::array<char, piece + alphabet> text{};
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % alphabet);
  return text;
}();

void write_padding(std::uint64_t sequence, std::span<char> out) {
  const char* from = letters.data() + (sequence + min_stamp_size) % alphabet;
  for (std::size_t at = 0; at < out.size(); at += piece)
    std::memcpy(out.data() + at, from, std::min(piece, out.size() - at));
}

}  // namespace

void write_stamp(const Stamp& stamp, std::span<char> out) {
  write_hex(stamp.client, out.data());
  write_decimal(stamp.sequence, out.data() + client_digits);
  const auto padding = out.subspan(min_stamp_size);
  write_padding(stamp.sequence, padding);
  write_hex(checksum({out.data(), checksum_at}, {padding.data(), padding.size()}), out.data() + checksum_at);
}

std::optional<Stamp> read_stamp(std::string_view text) {
  if (text.size() < min_stamp_size) return std::nullopt;
  const auto client = read_digits<16>(text.substr(0, client_digits));
  const auto sequence = read_digits<10>(text.substr(client_digits, sequence_digits));
  const auto sum = read_digits<16>(text.substr(checksum_at, checksum_digits));
  if (!client || !sequence || !sum) return std::nullopt;
  if (*sum != checksum(text.substr(0, checksum_at), text.substr(min_stamp_size))) return std::nullopt;
  return Stamp{static_cast<std::uint32_t>(*client), *sequence};
}

}  // namespace netdyno
