#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace netdyno {

/// Where a datagram comes from or goes to: an IPv4 or IPv6 address and a port, as the kernel wrote it (which leaves no
/// byte of it unset).
class Address {
 public:
  Address() : any_{} {}

  /// For the kernel to write to, and to read from.
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&any_); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&any_); }
  static constexpr socklen_t capacity = sizeof(sockaddr_in6);
  socklen_t size() const { return any_.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

  friend bool operator==(const Address& a, const Address& b) { return a.bytes() == b.bytes(); }

  std::string_view bytes() const { return {reinterpret_cast<const char*>(&any_), size()}; }

 private:
  sockaddr_in6 any_;  // or the shorter sockaddr_in, with the family in the same place (RFC 3493, 3.2)
};

}  // namespace netdyno

template <>
struct std::hash<netdyno::Address> {
  std::size_t operator()(const netdyno::Address& address) const noexcept {
    return std::hash<std::string_view>{}(address.bytes());
  }
};
