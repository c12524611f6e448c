#include "lib/net/accept.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace netdyno {

AcceptStatus accept_status(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return AcceptStatus::exhausted;
    case EINVAL:
    case EBADF:
      return AcceptStatus::not_listening;
    // accept(2): Linux passes pending network errors of the new socket through accept; they concern that peer alone.
    default:
      return AcceptStatus::try_again;
  }
}

Accepted accept_next(int listener, bool nonblocking) {
  UniqueFd fd{accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0))};
  const AcceptStatus status = fd ? AcceptStatus::accepted : accept_status(errno);
  return {status, std::move(fd)};
}

}  // namespace netdyno
