#pragma once

#include <string>
#include <string_view>

namespace netdyno {

/// Appends the bytes of an unsigned number, the highest first.
template <typename Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift));
}

/// Encodes bytes in base64, padded (RFC 4648, 4).
std::string encode_base64(std::string_view bytes);

}  // namespace netdyno
