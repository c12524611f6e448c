#include "lib/net/bind.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "lib/cli/die.hpp"
#include "lib/net/resolve.hpp"

namespace netdyno {
namespace {

std::string hint(int error) {
  if (error == EADDRINUSE) return "; another program listens there: choose another port, or port 0 for a free one";
  if (error == EACCES) return "; ports below 1024 need rights: choose a higher one";
  if (error == EADDRNOTAVAIL) return "; that address is not one of this machine's";
  return {};
}

[[noreturn]] void die_not_listening(const Url& where, int error) {
  die_errno(fmt::format("cannot listen on {}{}", format_url(where), hint(error)), error);
}

void allow(int fd, int option) {
  const int on = 1;
  if (setsockopt(fd, SOL_SOCKET, option, &on, sizeof on) != 0) die_errno("setsockopt", errno);
}

enum class Port { alone, beside_others };

UniqueFd listen_tcp(const Url& where, int backlog, bool nonblocking, Port port) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0);
  UniqueFd fd = bind_socket(where, type, [=](int new_fd) {
    allow(new_fd, SO_REUSEADDR);
    if (port == Port::beside_others) allow(new_fd, SO_REUSEPORT);
  });
  if (listen(fd.get(), backlog) != 0) die_not_listening(where, errno);
  return fd;
}

}  // namespace

UniqueFd bind_socket(const Url& where, int type, const std::function<void(int)>& prepare) {
  constexpr int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  const Resolved addresses{where.host, where.port, type & ~flags, AI_PASSIVE};
  int why = 0;  // of the first
  for (const addrinfo* address : addresses.in_order()) {
    UniqueFd fd{socket(address->ai_family, type, 0)};
    if (fd) {
      prepare(fd.get());
      if (bind(fd.get(), address->ai_addr, address->ai_addrlen) == 0) return fd;
    }
    if (why == 0) why = errno;
  }
  die_not_listening(where, why);
}

UniqueFd listen_tcp(const Url& where, int backlog, bool nonblocking) {
  return listen_tcp(where, backlog, nonblocking, Port::alone);
}

UniqueFd listen_tcp_on_port_of(const UniqueFd& first, int backlog, bool nonblocking) {
  // Only now: if it had been set when the first one was bound, another server of the same user could have had the port
  // already, and its clients would be split between the two.
  allow(first.get(), SO_REUSEPORT);
  return listen_tcp(local_endpoint(first.get()), backlog, nonblocking, Port::beside_others);
}

Url local_endpoint(int fd, const std::string& transport) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) die_errno("getsockname", errno);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                                NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) die(fmt::format("getnameinfo: {}", gai_strerror(error)));
  return {transport, host, static_cast<std::uint16_t>(std::atoi(port)), ""};
}

}  // namespace netdyno
