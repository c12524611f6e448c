#include "lib/server/backend.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "lib/cli/die.hpp"
#include "lib/net/resolve.hpp"
#include "lib/net/send.hpp"
#include "work.pb.h"

namespace netdyno {

UniqueFd connect_to_backend(const Url& backend) {
  const Resolved addresses{backend.host, backend.port, SOCK_STREAM};
  int why = 0;  // of the first
  for (const addrinfo* address : addresses.in_order()) {
    UniqueFd fd{socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (fd && connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) {
      set_nodelay(fd.get(), true);
      return fd;
    }
    if (why == 0) why = errno;
  }
  die_errno("cannot connect to the backend " + format_url(backend) + "; start it first", why);
}

std::string encode_question(std::chrono::nanoseconds duration) {
  wire::WorkMessage message;
  message.mutable_request()->set_workload(
      static_cast<std::int32_t>(std::chrono::ceil<std::chrono::microseconds>(duration).count()));
  const std::string body = message.SerializeAsString();
  const auto header = encode_frame_header(body.size());
  return std::string{header.data(), header.size()} + body;
}

void die_without_backend() { die("the backend closed a connection; it must run as long as this server"); }

}  // namespace netdyno
