#include "lib/net/descriptor.hpp"

#include <unistd.h>

namespace netdyno {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

}  // namespace netdyno
