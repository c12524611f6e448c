#include "lib/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
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

void flush_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
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
