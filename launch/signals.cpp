// Starts a program to which SIGTERM and SIGINT come as data on descriptor 3, a structure of signalfd(2) for each.
// Erlang's runtime keeps SIGINT for a menu on the terminal, and lets no program have it.
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "lib/cli/die.hpp"

int main(int argc, char** argv) {
  constexpr int descriptor = 3;
  if (argc < 2) {
    std::fputs("usage: netdyno-signals PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) netdyno::die_errno("sigprocmask", errno);
  const int opened = signalfd(-1, &signals, SFD_NONBLOCK);
  if (opened < 0) netdyno::die_errno("signalfd", errno);
  if (opened != descriptor) {
    if (dup2(opened, descriptor) < 0) netdyno::die_errno("dup2", errno);
    close(opened);
  }
  execvp(argv[1], argv + 1);
  netdyno::die_errno(std::string{"cannot start "} + argv[1], errno);
}
