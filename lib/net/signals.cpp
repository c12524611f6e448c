#include "lib/net/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

#include "lib/cli/die.hpp"

namespace netdyno {

UniqueFd termination_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) die_errno("signalfd", errno);
  return fd;
}

}  // namespace netdyno
