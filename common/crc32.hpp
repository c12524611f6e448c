#pragma once

#include <zlib.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace netdyno {
namespace detail {

/// Tables for eight bytes at a time ("slicing by 8", M. Kounavis and F. Berry, Intel 2005): `tables[k][b]` is the CRC
/// of byte b followed by k zeros.
inline constexpr auto crc32_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320U : 0U);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255];
  return tables;
}();

}  // namespace detail

/// CRC-32 (IEEE 802.3) of `bytes`, continued from `crc`: what zlib's crc32_z computes. Short texts are done here,
/// because zlib takes them a byte at a time: for a 31-byte message that was a fifth of the generator's own CPU.
inline std::uint32_t crc32(std::uint32_t crc, std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t worth_zlib = 128;
  if (bytes.size() >= worth_zlib)
    return static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));

  const auto& tables = detail::crc32_tables;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  crc = ~crc;
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= crc;
    crc = tables[7][word & 255] ^ tables[6][word >> 8 & 255] ^ tables[5][word >> 16 & 255] ^
          tables[4][word >> 24 & 255] ^ tables[3][word >> 32 & 255] ^ tables[2][word >> 40 & 255] ^
          tables[1][word >> 48 & 255] ^ tables[0][word >> 56];
  }
  if (left >= 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= crc;
    crc = tables[3][word & 255] ^ tables[2][word >> 8 & 255] ^ tables[1][word >> 16 & 255] ^ tables[0][word >> 24];
    left -= 4;
    at += 4;
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 255];
  return ~crc;
}

}  // namespace netdyno
