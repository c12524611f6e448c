#pragma once

#include <cstdint>
#include <string_view>

namespace netdyno {

/// CRC-32 (IEEE 802.3, what zlib's crc32_z computes) of three little-endian words, twenty bytes, followed by `rest`.
/// The 16 bytes before `rest` must be readable.
///
/// A stamp is made and checked with every message. Carry-less multiplication, where the processor has it, does without
/// tables, whose lines the kernel drives from the cache between two messages, and takes 16 bytes at a time
/// (bench/record_cost.cpp, encode_and_verify). libdeflate, which multiplies too, takes single bytes up to an address
/// divisible by 16: for 64 bytes 33 ns where this takes 7 (1.14, 28 November 2026).
std::uint32_t crc32(std::uint64_t first, std::uint64_t second, std::uint32_t third, std::string_view rest);

/// The same without that instruction.
std::uint32_t crc32_portable(std::uint64_t first, std::uint64_t second, std::uint32_t third, std::string_view rest);

}  // namespace netdyno
