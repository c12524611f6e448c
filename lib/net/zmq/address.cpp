#include "lib/net/zmq/address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/cli/die.hpp"
#include "lib/net/resolve.hpp"

namespace netdyno {

std::vector<std::string> zmq_addresses(const Url& url, Binding binding) {
  const Resolved addresses{url.host, url.port, SOCK_STREAM, binding == Binding::yes ? AI_PASSIVE : 0};
  std::vector<std::string> texts;
  for (const addrinfo* address : addresses.in_order()) {
    char host[NI_MAXHOST];
    const int error = getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    if (error != 0) die(fmt::format("getnameinfo: {}", gai_strerror(error)));
    texts.push_back(format_url({"tcp", host, url.port, ""}));
  }
  return texts;
}

}  // namespace netdyno
