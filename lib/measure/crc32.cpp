#include "lib/measure/crc32.hpp"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>

#include <utility>
#endif

namespace netdyno {

static_assert(std::endian::native == std::endian::little);

std::uint32_t crc32_portable(std::uint64_t first, std::uint64_t second, std::uint32_t third, std::string_view rest) {
  std::array<Bytef, sizeof first + sizeof second + sizeof third> head;
  std::memcpy(head.data(), &first, sizeof first);
  std::memcpy(head.data() + sizeof first, &second, sizeof second);
  std::memcpy(head.data() + sizeof first + sizeof second, &third, sizeof third);
  return static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, head.data(), head.size()), reinterpret_cast<const Bytef*>(rest.data()), rest.size()));
}

#ifndef __x86_64__

std::uint32_t crc32(std::uint64_t first, std::uint64_t second, std::uint32_t third, std::string_view rest) {
  return crc32_portable(first, second, third, rest);
}

#else

namespace {

// V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), in the
// reflected form, where the lowest bit is the highest power of x. A CRC is the remainder of the bytes, times x^32, by
// the polynomial below; so 16 bytes may be replaced by anything of the same remainder, and be "folded" past what comes
// after them: their halves are multiplied with the remainders of powers of x.
constexpr std::uint32_t polynomial = 0xedb88320;
// The polynomial with its highest power, and the quotient of x^64 by it, for the last step (Barrett's reduction).
constexpr std::uint64_t whole_polynomial = 0x1db710641;
constexpr std::uint64_t quotient = 0x1f7011641;

/// The remainder of x^power as a factor of 64 bits: of x^(power - 1), for a reflected product is one bit short.
consteval std::uint64_t remainder_of(unsigned power) {
  std::uint32_t remainder = 0x80000000;
  for (unsigned i = 1; i < power; ++i) remainder = (remainder >> 1) ^ (remainder & 1 ? polynomial : 0);
  return std::uint64_t{remainder} << 32;
}

struct Factors {
  std::uint64_t low_half, high_half;
};

/// Factors that move 16 bytes past 1, 2, ... 16 bytes.
constexpr auto factors = []<unsigned... less>(std::integer_sequence<unsigned, less...>) {
  return std::array{Factors{remainder_of(64 + 8 * (less + 1)), remainder_of(8 * (less + 1))}...};
}
(std::make_integer_sequence<unsigned, 16>{});

/// The 16 bytes at k have their last k bytes set.
constexpr auto last_bytes = [] {
  std::array<std::uint8_t, 32> mask{};
  for (std::size_t i = 16; i < mask.size(); ++i) mask[i] = 0xff;
  return mask;
}();

#define NETDYNO_FOLDS [[gnu::target("pclmul,sse4.1")]]

NETDYNO_FOLDS inline __m128i load(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

NETDYNO_FOLDS inline __m128i fold(__m128i sixteen, std::size_t past, __m128i next) {
  const __m128i factor = load(&factors[past - 1]);
  const __m128i low = _mm_clmulepi64_si128(sixteen, factor, 0x00);
  const __m128i high = _mm_clmulepi64_si128(sixteen, factor, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/// The remainder of 16 bytes, times x^32.
NETDYNO_FOLDS inline std::uint32_t reduce(__m128i sixteen) {
  const __m128i factor =
      _mm_set_epi64x(static_cast<long long>(remainder_of(64)), static_cast<long long>(remainder_of(96)));
  const __m128i high = _mm_slli_si128(_mm_srli_si128(sixteen, 8), 4);  // times x^32, and has room for it
  const __m128i twelve = _mm_xor_si128(_mm_clmulepi64_si128(sixteen, factor, 0x00), high);
  const __m128i eight = _mm_srli_si128(_mm_xor_si128(_mm_clmulepi64_si128(twelve, factor, 0x10), twelve), 8);
  const __m128i barrett = _mm_set_epi64x(static_cast<long long>(whole_polynomial), static_cast<long long>(quotient));
  const __m128i four = _mm_cvtsi32_si128(-1);
  const __m128i times = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(eight, four), barrett, 0x00), four);
  const __m128i multiple = _mm_clmulepi64_si128(times, barrett, 0x10);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(eight, multiple), 1));
}

NETDYNO_FOLDS std::uint32_t crc32_folded(std::uint64_t first, std::uint64_t second, std::uint32_t third,
                                         std::string_view rest) {
  // A CRC begins with all bits of its first four bytes turned round, and ends with its own.
  __m128i sixteen = _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first ^ 0xffffffff));
  sixteen = fold(sixteen, sizeof third, _mm_slli_si128(_mm_cvtsi32_si128(static_cast<int>(third)), 12));
  const char* end = rest.data() + rest.size();
  std::size_t left = rest.size();
  for (; left >= 16; left -= 16) sixteen = fold(sixteen, 16, load(end - left));
  if (left > 0) sixteen = fold(sixteen, left, _mm_and_si128(load(end - 16), load(&last_bytes[left])));
  return ~reduce(sixteen);
}

}  // namespace

std::uint32_t crc32(std::uint64_t first, std::uint64_t second, std::uint32_t third, std::string_view rest) {
  const bool multiplies = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return (multiplies ? crc32_folded : crc32_portable)(first, second, third, rest);
}

#endif

}  // namespace netdyno
