#include "lib/net/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

void end_now(int number) {
  std::raise(number);
  _exit(128 + number);  // process 1 is still there
}

}  // namespace

std::span<const int> ending_signals() {
  static constexpr int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  return std::span{numbers}.first(hangup.sa_handler == SIG_IGN ? 2 : 3);
}

void end_at_signals() {
  struct sigaction action {};
  action.sa_handler = end_now;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const int number : ending_signals()) sigaction(number, &action, nullptr);
}

UniqueFd termination_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : ending_signals()) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) die_errno("signalfd", errno);
  return fd;
}

}  // namespace netdyno
