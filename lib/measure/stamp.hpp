#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace netdyno {

/// Identifies a message: every message of the generator carries one (protocol/WIRE.md, "Stamps").
struct Stamp {
  std::uint32_t client = 0;
  std::uint64_t sequence = 0;  // below 10^12
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

inline constexpr std::size_t min_stamp_size = 28;

/// Appends the text of a stamp in `size` bytes, min_stamp_size or more: identity, checksum, padding.
void append_stamp(const Stamp& stamp, std::size_t size, std::string& out);

/// Nothing when `text` is no stamp or its checksum is wrong.
std::optional<Stamp> read_stamp(std::string_view text);

}  // namespace netdyno
