#include "common/stamp.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "common/crc32.hpp"

namespace netdyno {
namespace {

constexpr std::size_t client_digits = 8;     // hexadecimal, as the checksum's
constexpr std::size_t sequence_digits = 12;  // decimal
constexpr std::size_t checksum_digits = client_digits;
constexpr std::size_t checksum_at = client_digits + sequence_digits;
constexpr std::uint64_t sequences = 1'000'000'000'000;
constexpr std::size_t alphabet = 26;

// Eight digits at once, one in each byte of a word ("SIMD within a register"): with a loop over the digits, the stamps
// were half of the instructions that the generator spends on a short message.
static_assert(std::endian::native == std::endian::little);
constexpr std::uint64_t in_every_byte = 0x0101010101010101;

std::uint64_t load(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

void write_hex(std::uint32_t value, char* out) {
  std::uint64_t word = value;
  word = (word << 16 | word) & 0x0000ffff0000ffff;
  word = (word << 8 | word) & 0x00ff00ff00ff00ff;
  word = (word << 4 | word) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (word + 6 * in_every_byte) >> 4 & in_every_byte;
  word += '0' * in_every_byte + ('a' - '0' - 10) * letters;
  word = __builtin_bswap64(word);
  std::memcpy(out, &word, sizeof word);
}

constexpr auto digit_pairs = [] {
  std::array<char, 200> text{};
  for (std::size_t i = 0; i < 100; ++i) {
    text[2 * i] = static_cast<char>('0' + i / 10);
    text[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return text;
}();

void write_pair(std::uint32_t below_100, char* out) { std::memcpy(out, digit_pairs.data() + 2 * below_100, 2); }

void write_decimal(std::uint64_t value, char* out) {
  const auto low = static_cast<std::uint32_t>(value % 100'000'000);
  const std::array<std::uint32_t, 3> fours{static_cast<std::uint32_t>(value / 100'000'000), low / 10'000, low % 10'000};
  for (const std::uint32_t four : fours) {
    write_pair(four / 100, out);
    write_pair(four % 100, out + 2);
    out += 4;
  }
}

void write_identity(const Stamp& stamp, char* out) {
  write_hex(stamp.client, out);
  write_decimal(stamp.sequence, out + client_digits);
}

/// The value of eight hexadecimal digits; of anything else, some value.
std::uint32_t guess_hex(const char* text) {
  std::uint64_t word = __builtin_bswap64(load(text));
  word = (word & 15 * in_every_byte) + 9 * (word >> 6 & in_every_byte);
  word = (word >> 4 | word) & 0x00ff00ff00ff00ff;
  word = (word >> 8 | word) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(word >> 16 | word);
}

/// The value of twelve decimal digits; of anything else, some value.
std::uint64_t guess_decimal(const char* text) {
  std::uint64_t word = load(text) & 15 * in_every_byte;
  word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
  word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
  std::uint64_t value = static_cast<std::uint32_t>(word * 10'000 + (word >> 32));
  for (const char digit : std::string_view{text + 8, 4}) value = value * 10 + (static_cast<unsigned char>(digit) & 15);
  return value;
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
  write_identity(stamp, out.data());
  const auto padding = out.subspan(min_stamp_size);
  write_padding(stamp.sequence, padding);
  write_hex(checksum({out.data(), checksum_at}, {padding.data(), padding.size()}), out.data() + checksum_at);
}

/// What the digits may mean is written again, and has to be the same text: so nothing but digits passes.
std::optional<Stamp> read_stamp(std::string_view text) {
  if (text.size() < min_stamp_size) return std::nullopt;
  const Stamp stamp{guess_hex(text.data()), guess_decimal(text.data() + client_digits)};
  if (stamp.sequence >= sequences) return std::nullopt;
  std::array<char, min_stamp_size> again{};
  write_identity(stamp, again.data());
  write_hex(checksum(text.substr(0, checksum_at), text.substr(min_stamp_size)), again.data() + checksum_at);
  if (std::memcmp(again.data(), text.data(), again.size()) != 0) return std::nullopt;
  return stamp;
}

}  // namespace netdyno
