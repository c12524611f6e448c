#pragma once

#include <functional>
#include <string>

#include "lib/cli/url.hpp"
#include "lib/net/descriptor.hpp"

namespace netdyno {

/// A socket of `type` (socket(2)), bound where `where` says; `prepare` sets its options before. Dies with a hint when
/// that cannot be had.
UniqueFd bind_socket(const Url& where, int type, const std::function<void(int fd)>& prepare);

/// A listening TCP socket (SO_REUSEADDR). Dies with a hint when that cannot be had.
UniqueFd listen_tcp(const Url& where, int backlog, bool nonblocking);

/// One more on the address and port of `first`, which listen_tcp() made (SO_REUSEPORT, socket(7)). The kernel gives
/// each connection to one of them, by a hash of both addresses and ports; what waits at one that is closed is reset.
UniqueFd listen_tcp_on_port_of(const UniqueFd& first, int backlog, bool nonblocking);

/// Where a bound socket really is: transport://host:port with the port the kernel chose.
Url local_endpoint(int fd, const std::string& transport = "tcp");

}  // namespace netdyno
