#pragma once

#include <string>

#include "lib/protocol/framing.hpp"

namespace netdyno {

/// A body as it travels (protocol/WIRE.md).
inline std::string frame(const std::string& body) {
  const auto header = encode_frame_header(body.size());
  return std::string(header.data(), header.size()) + body;
}

}  // namespace netdyno
