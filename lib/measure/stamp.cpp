#include "lib/measure/stamp.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "lib/measure/crc32.hpp"

namespace netdyno {
namespace {

constexpr std::size_t client_digits = 8;     // hexadecimal, as the checksum's
constexpr std::size_t sequence_digits = 12;  // decimal
constexpr std::size_t checksum_at = client_digits + sequence_digits;
constexpr std::size_t alphabet = 26;

// Several digits at once, one in each byte of a word ("SIMD within a register"): with a loop over the digits, the
// stamps were half of the instructions that the generator spends on a short message. The first digit is the lowest
// byte.
static_assert(std::endian::native == std::endian::little);
constexpr std::uint64_t in_every_byte = 0x0101010101010101;

std::uint64_t hex_text(std::uint32_t value) {
  std::uint64_t word = value;
  word = (word << 16 | word) & 0x0000ffff0000ffff;
  word = (word << 8 | word) & 0x00ff00ff00ff00ff;
  word = (word << 4 | word) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (word + 6 * in_every_byte) >> 4 & in_every_byte;
  word += '0' * in_every_byte + ('a' - '0' - 10) * letters;
  return __builtin_bswap64(word);
}

/// The value of eight hexadecimal digits; of anything else, some value.
std::uint32_t guess_hex(std::uint64_t text) {
  std::uint64_t word = __builtin_bswap64(text);
  word = (word & 15 * in_every_byte) + 9 * (word >> 6 & in_every_byte);
  word = (word >> 4 | word) & 0x00ff00ff00ff00ff;
  word = (word >> 8 | word) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(word >> 16 | word);
}

/// The digits of two numbers below 10,000, the first in the lower half. Each step parts every number into two; the
/// divisions are products with rounded reciprocals, exact for numbers this small.
std::uint64_t decimal_text(std::uint64_t fours) {
  const std::uint64_t hundreds = (fours * 10'486 >> 20) & 0x0000007f0000007f;
  const std::uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
  const std::uint64_t tens = (pairs * 103 >> 10) & 0x000f000f000f000f;
  return (tens | (pairs - 10 * tens) << 8) + '0' * in_every_byte;
}

/// The reverse: two numbers of four digits. Each step joins neighbours.
std::uint64_t decimal_fours(std::uint64_t text) {
  std::uint64_t word = text & 15 * in_every_byte;
  word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
  return (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
}

/// A digit has the high half 3, also when 6 is added. A byte that carries into the next has failed by its high half.
bool all_decimal(std::uint64_t text) {
  constexpr std::uint64_t high_halves = 0xf0 * in_every_byte;
  return (text & high_halves) == '0' * in_every_byte &&
         ((text + 6 * in_every_byte) & high_halves) == '0' * in_every_byte;
}

template <typename Word>
void store(Word word, char* to) {
  std::memcpy(to, &word, sizeof word);
}

/// The text of an identity, in the words in which it is copied.
struct Identity {
  std::uint64_t client;
  std::uint64_t sequence_high;  // its first eight digits
  std::uint32_t sequence_low;
};
static_assert(offsetof(Identity, sequence_low) + sizeof(Identity::sequence_low) == checksum_at);

Identity text_of(const Stamp& stamp) {
  const std::uint64_t high = stamp.sequence / 10'000;
  return {.client = hex_text(stamp.client),
          .sequence_high = decimal_text(high / 10'000 | high % 10'000 << 32),
          .sequence_low = static_cast<std::uint32_t>(decimal_text(stamp.sequence % 10'000))};
}

std::uint64_t checksum_text(const Identity& identity, std::string_view padding) {
  return hex_text(crc32(identity.client, identity.sequence_high, identity.sequence_low, padding));
}

/// The alphabet over and over, so that padding is copied in long pieces and not made letter by letter. No constant: of
/// one, the compiler knows the length, and copies it by a string instruction that takes 30 ns to begin.
const std::string letters = [] {
  std::string text;
  for (std::size_t i = 0; i < 41 * alphabet; ++i) text.push_back(static_cast<char>('a' + i % alphabet));
  return text;
}();

}  // namespace

void append_stamp(const Stamp& stamp, std::size_t size, std::string& out) {
  const std::size_t begin = out.size();
  // Letters first, all the way: they need no clearing beforehand, as a resize would.
  const char* from = letters.data() + stamp.sequence % alphabet;
  const std::size_t piece = letters.size() - alphabet;
  for (std::size_t left = size; left > 0; left -= std::min(piece, left)) out.append(from, std::min(piece, left));
  char* text = out.data() + begin;
  const Identity identity = text_of(stamp);
  store(identity.client, text);
  store(identity.sequence_high, text + client_digits);
  store(identity.sequence_low, text + client_digits + sizeof identity.sequence_high);
  // Where the padding is short, not of what has just been written: the processor would wait for it to arrive.
  const char* source = size <= piece ? from : text;
  store(checksum_text(identity, {source + min_stamp_size, size - min_stamp_size}), text + checksum_at);
}

std::optional<Stamp> read_stamp(std::string_view text) {
  if (text.size() < min_stamp_size) return std::nullopt;
  Identity identity;
  std::memcpy(&identity, text.data(), checksum_at);
  const std::uint64_t low = identity.sequence_low | '0' * in_every_byte << 32;
  const std::uint32_t client = guess_hex(identity.client);
  if (hex_text(client) != identity.client || !all_decimal(identity.sequence_high) || !all_decimal(low))
    return std::nullopt;
  const std::uint64_t checksum = checksum_text(identity, text.substr(min_stamp_size));
  if (std::memcmp(&checksum, text.data() + checksum_at, sizeof checksum) != 0) return std::nullopt;
  const std::uint64_t fours = decimal_fours(identity.sequence_high);
  return Stamp{client, (fours & 0xffff) * 100'000'000 + (fours >> 32) * 10'000 + (decimal_fours(low) & 0xffff)};
}

}  // namespace netdyno
