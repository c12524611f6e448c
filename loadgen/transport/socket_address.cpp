#include "loadgen/transport/socket_address.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "lib/cli/die.hpp"
#include "lib/net/resolve.hpp"

namespace netdyno::load {

std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port) {
  const Resolved resolved{host, port, SOCK_STREAM};  // one entry for each address, whatever the transport
  std::vector<SocketAddress> addresses;
  for (const addrinfo* found : resolved.in_order()) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.size = found->ai_addrlen;
  }
  return addresses;
}

SocketAddress unix_address(const std::string& file) {
  SocketAddress address;
  auto& to = reinterpret_cast<sockaddr_un&>(address.storage);
  if (file.size() >= sizeof to.sun_path) die(fmt::format("the name of the socket '{}' is too long", file));
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, file.c_str(), file.size() + 1);
  address.size = sizeof to;
  return address;
}

std::vector<std::vector<SocketAddress>> resolve_sources(const std::vector<std::string>& hosts) {
  std::vector<std::vector<SocketAddress>> sources;
  for (const auto& host : hosts) sources.push_back(resolve(host, 0));
  return sources;
}

const SocketAddress* find_source(const std::vector<SocketAddress>& source, const SocketAddress& server) {
  for (const SocketAddress& address : source)
    if (address.storage.ss_family == server.storage.ss_family) return &address;
  return nullptr;
}

ConnectFailure connect_failure(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ConnectFailure::refused;
    case ETIMEDOUT:
      return ConnectFailure::timed_out;
    case ECONNRESET:
      return ConnectFailure::reset;
    default:
      return ConnectFailure::other;
  }
}

int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace netdyno::load
