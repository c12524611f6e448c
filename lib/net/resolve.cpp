#include "lib/net/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

addrinfo* look_up(const std::string& host, std::uint16_t port, int type, int flags) {
  addrinfo hints{};
  hints.ai_socktype = type;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) die(fmt::format("cannot resolve '{}': {}", host, gai_strerror(error)));
  return found;
}

}  // namespace

std::vector<const addrinfo*> take_families_in_turn(const addrinfo* found) {
  std::vector<const addrinfo*> first, others, in_order;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next)
    (address->ai_family == found->ai_family ? first : others).push_back(address);
  for (std::size_t i = 0; i < std::max(first.size(), others.size()); ++i) {
    if (i < first.size()) in_order.push_back(first[i]);
    if (i < others.size()) in_order.push_back(others[i]);
  }
  return in_order;
}

Resolved::Resolved(const std::string& host, std::uint16_t port, int type, int flags)
    : found_(look_up(host, port, type, flags), freeaddrinfo), in_order_(take_families_in_turn(found_.get())) {}

}  // namespace netdyno
