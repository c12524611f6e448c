#include "loadgen/transport/address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "lib/cli/die.hpp"

namespace netdyno::load {

Address resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;  // one entry for each address, whatever the transport
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) die(fmt::format("cannot resolve '{}': {}", host, gai_strerror(error)));
  const addrinfo* best = found;
  for (const addrinfo* other = found; other != nullptr && best->ai_family != AF_INET; other = other->ai_next)
    if (other->ai_family == AF_INET) best = other;
  Address address;
  std::memcpy(&address.storage, best->ai_addr, best->ai_addrlen);
  address.size = best->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Address unix_address(const std::string& file) {
  Address address;
  auto& to = reinterpret_cast<sockaddr_un&>(address.storage);
  if (file.size() >= sizeof to.sun_path) die(fmt::format("the name of the socket '{}' is too long", file));
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, file.c_str(), file.size() + 1);
  address.size = sizeof to;
  return address;
}

std::vector<Address> resolve_sources(const std::vector<std::string>& hosts) {
  std::vector<Address> sources;
  for (const auto& host : hosts) sources.push_back(resolve(host, 0));
  return sources;
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
