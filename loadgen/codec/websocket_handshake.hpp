#pragma once

#include <random>
#include <string>
#include <string_view>

namespace netdyno::load {

/// Draws a key for the handshake of a WebSocket: 16 random bytes in base64 (RFC 6455, 4.1).
std::string draw_websocket_key(std::mt19937& random);

/// Returns what a server must answer to a key (RFC 6455, 4.2.2).
std::string compute_websocket_accept(std::string_view key);

}  // namespace netdyno::load
