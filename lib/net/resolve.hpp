#pragma once

#include <netdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace netdyno {

/// The addresses of a host, at least one, in the order in which they are to be tried: as the system ranks them
/// (RFC 6724), and the families in turn (RFC 8305, 4), so that one family that leads nowhere costs one try.
class Resolved {
 public:
  /// For sockets of `type` (socket(2)). `flags` are those of getaddrinfo(3). Ends the program where there is no
  /// address.
  Resolved(const std::string& host, std::uint16_t port, int type, int flags = 0);

  const std::vector<const addrinfo*>& in_order() const { return in_order_; }

 private:
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found_;
  std::vector<const addrinfo*> in_order_;
};

/// The order of RFC 8305, 4: those of the first one's family and all others in turn, each in the order they have.
std::vector<const addrinfo*> take_families_in_turn(const addrinfo* found);

}  // namespace netdyno
