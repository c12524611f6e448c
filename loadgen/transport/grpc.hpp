#pragma once

#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Unary gRPC over HTTP/2 (RFC 9113, without an upgrade), by libnghttp2, over a transport of streams: a connection is
/// established when the server's SETTINGS are here. Each message that is sent has a stream of its own, as many at a
/// time as the server allows; what is received are the messages of streams that ended well, in the order of their ends.
std::unique_ptr<Transport> make_grpc_transport(const LoadPlan& plan, const ThreadShare& share,
                                               std::unique_ptr<Transport> below);

}  // namespace netdyno::load
