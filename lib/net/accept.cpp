#include "lib/net/accept.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace netdyno {

Accepted accept_one(int listener, bool nonblocking) {
  UniqueFd fd{accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0))};
  if (fd) return {AcceptStatus::accepted, std::move(fd)};
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return {AcceptStatus::exhausted, {}};
    case EINVAL:
    case EBADF:
      return {AcceptStatus::not_listening, {}};
    // accept(2): Linux passes pending network errors of the new socket through accept; they concern that peer alone.
    default:
      return {AcceptStatus::try_again, {}};
  }
}

}  // namespace netdyno
