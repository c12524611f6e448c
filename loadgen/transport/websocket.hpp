#pragma once

#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// WebSocket (RFC 6455) over a transport of streams: a connection is established when the server has agreed to it. What
/// is sent are frames (codec/websocket.cpp); what is received is the data that the server's frames hold.
std::unique_ptr<Transport> make_websocket_transport(const LoadPlan& plan, const ThreadShare& share,
                                                    std::unique_ptr<Transport> below);

}  // namespace netdyno::load
