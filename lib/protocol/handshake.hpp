#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/protocol/workload.hpp"

/// How clients make themselves known over transports that carry messages and have no connections (protocol/WIRE.md).
namespace netdyno {

enum class ControlKind { hello, welcome, full, bye };

struct ControlMessage {
  ControlKind kind;
  std::uint64_t token;  // chosen by the client
};

inline constexpr std::size_t control_size = 16;
using ControlBytes = std::array<char, control_size>;

ControlBytes encode_control(const ControlMessage& message);

/// Whether `message` claims to be one: nothing else begins with four zero bytes.
bool is_control(std::string_view message);

/// Nothing when it is none, or a broken one.
std::optional<ControlMessage> decode_control(std::string_view message);

/// Whether these bytes are exactly one message of the workload, as far as its framing goes.
bool is_one_message(Workload workload, std::string_view bytes);

/// The longest datagram of UDP over IPv4 (RFC 768, RFC 791): 65535 bytes less both headers.
inline constexpr std::size_t max_datagram = 65507;

}  // namespace netdyno
