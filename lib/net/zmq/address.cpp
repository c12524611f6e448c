#include "lib/net/zmq/address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "lib/cli/die.hpp"

namespace netdyno {

std::string zmq_address(const Url& url, Binding binding) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = binding == Binding::yes ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(url.host.c_str(), nullptr, &hints, &found);
  if (error != 0) die(fmt::format("cannot resolve '{}': {}", url.host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses{found, freeaddrinfo};
  const addrinfo* best = found;
  for (const addrinfo* other = found; other != nullptr && best->ai_family != AF_INET; other = other->ai_next)
    if (other->ai_family == AF_INET) best = other;

  char host[NI_MAXHOST];
  const int unnamed = getnameinfo(best->ai_addr, best->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  if (unnamed != 0) die(fmt::format("getnameinfo: {}", gai_strerror(unnamed)));
  return format_url({"tcp", host, url.port, ""});
}

}  // namespace netdyno
