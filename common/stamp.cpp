#include "common/stamp.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace netdyno {
namespace {

constexpr std::size_t client_digits = 8;
constexpr std::size_t sequence_digits = 12;
constexpr std::size_t checksum_digits = 8;
constexpr std::size_t checksum_at = client_digits + sequence_digits;
constexpr std::size_t alphabet = 26;

void write_hex(std::uint64_t value, char* out, std::size_t digits) {
  for (std::size_t i = digits; i > 0; --i, value >>= 4) out[i - 1] = "0123456789abcdef"[value & 15];
}

constexpr std::array<std::int8_t, 256> hex_values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 10; ++i) values[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
  for (int i = 0; i < 6; ++i) values[static_cast<std::size_t>('a' + i)] = static_cast<std::int8_t>(10 + i);
  return values;
}();

/// False when a character is no lower-case hexadecimal digit.
bool read_hex(std::string_view text, std::uint64_t& value) {
  value = 0;
  int bad = 0;
  for (const char c : text) {
    const int digit = hex_values[static_cast<unsigned char>(c)];
    bad |= digit;
    value = value << 4 | static_cast<std::uint64_t>(digit & 15);
  }
  return bad >= 0;
}

std::uint32_t checksum(std::string_view identity, std::string_view padding) {
  const auto add = [](uLong crc, std::string_view bytes) {
    return crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  const uLong crc = add(0, identity);
  return static_cast<std::uint32_t>(padding.empty() ? crc : add(crc, padding));
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
  write_hex(stamp.client, out.data(), client_digits);
  write_hex(stamp.sequence, out.data() + client_digits, sequence_digits);
  const auto padding = out.subspan(min_stamp_size);
  write_padding(stamp.sequence, padding);
  write_hex(checksum({out.data(), checksum_at}, {padding.data(), padding.size()}), out.data() + checksum_at,
            checksum_digits);
}

std::optional<Stamp> read_stamp(std::string_view text) {
  if (text.size() < min_stamp_size) return std::nullopt;
  std::uint64_t client = 0;
  std::uint64_t sequence = 0;
  std::uint64_t sum = 0;
  const bool digits = read_hex(text.substr(0, client_digits), client) &&
                      read_hex(text.substr(client_digits, sequence_digits), sequence) &&
                      read_hex(text.substr(checksum_at, checksum_digits), sum);
  if (!digits || sum != checksum(text.substr(0, checksum_at), text.substr(min_stamp_size))) return std::nullopt;
  return Stamp{static_cast<std::uint32_t>(client), sequence};
}

}  // namespace netdyno
