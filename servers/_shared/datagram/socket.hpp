#pragma once

#include "lib/net/bind.hpp"
#include "lib/server/options.hpp"

namespace netdyno {

/// A non-blocking UDP socket that is bound where `options` say, with the asked socket buffers. No other program has its
/// port. Dies with a hint when that cannot be had.
UniqueFd bind_udp(const ServerOptions& options);

/// One more socket on the address and port of `first`, which bind_udp() made (SO_REUSEPORT, socket(7)). The kernel
/// spreads what arrives over all of them by a hash of both addresses: a client's datagrams always come to the same one,
/// for as long as none is added or closed.
UniqueFd bind_udp_on_port_of(const UniqueFd& first, const ServerOptions& options);

/// Asks the kernel to hand over in one piece what came in one piece (UDP_GRO, udp(7), Linux 5.0). False when it cannot.
bool merge_arrivals(int fd);

/// From now on nothing more arrives; what has arrived can still be received.
void stop_arrivals(int fd);

/// Something has arrived that is not received yet.
bool has_arrivals(int fd);

}  // namespace netdyno
