#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "lib/measure/stamp.hpp"
#include "lib/protocol/framing.hpp"

/// Messages as gRPC carries them: a byte that says whether the message is compressed, its length, and the message.
namespace netdyno::load {

inline constexpr std::size_t grpc_prefix_size = 1 + frame_header_size;

/// Size of the message at the front of `bytes`, with its prefix; 0 while that is not there whole.
inline std::size_t find_grpc_size(std::string_view bytes) {
  return bytes.size() < grpc_prefix_size ? 0 : grpc_prefix_size + decode_frame_header(bytes.data() + 1);
}

/// The stamp in a message of protocol/grpc.proto, whose first field has it in front; empty where there is none.
inline std::string_view find_stamp_text(std::string_view message) {
  constexpr std::size_t before_length = grpc_prefix_size + 1;
  std::size_t begin = before_length;
  while (begin < message.size() && (message[begin] & 0x80) != 0) ++begin;  // the varint of its length
  ++begin;
  return begin + min_stamp_size > message.size() ? std::string_view{} : message.substr(begin, min_stamp_size);
}

}  // namespace netdyno::load
