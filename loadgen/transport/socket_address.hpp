#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// The addresses of a host in the order in which they are to be tried (lib/net/resolve.hpp): `localhost` is ::1 and
/// 127.0.0.1. Ends the program when there is none.
std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port);

/// That of a socket in the file system. Ends the program when its name is too long.
SocketAddress unix_address(const std::string& file);

/// The addresses of each of --source-ips.
std::vector<std::vector<SocketAddress>> resolve_sources(const std::vector<std::string>& hosts);
/// That of a source which a socket to the server can have: of the same family. nullptr where there is none.
const SocketAddress* find_source(const std::vector<SocketAddress>& source, const SocketAddress& server);

/// Returns what the errno of a connect means.
ConnectFailure connect_failure(int error);

/// The pending error of a socket; reading clears it (socket(7), SO_ERROR).
int socket_error(int fd);

}  // namespace netdyno::load
