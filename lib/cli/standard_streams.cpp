#include "lib/cli/standard_streams.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace netdyno {
namespace {

/// The other direction than that of use, so that reading and writing fail with EBADF, as before.
void open_closed_ones() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

/// Whether no program reads from the other end of a pipe or socket (poll(2)).
bool is_unread(int descriptor) {
  pollfd end{descriptor, 0, 0};
  return poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

void flush_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  if (is_unread(STDOUT_FILENO)) _exit(128 + SIGPIPE);  // as by the signal, which a server ignores: quietly
  std::fprintf(stderr, "%s: cannot write standard output%s%s\n", program_invocation_short_name, errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  _exit(1);
}

}  // namespace

void guard_standard_streams() {
  static const bool guarded = [] {
    open_closed_ones();
    return std::atexit(flush_stdout) == 0;
  }();
  static_cast<void>(guarded);
}

}  // namespace netdyno
