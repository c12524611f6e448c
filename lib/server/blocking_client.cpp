#include "lib/server/blocking_client.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "lib/net/signals.hpp"
#include "lib/server/lifecycle.hpp"

namespace netdyno {
namespace {

using Flag = volatile std::sig_atomic_t;
Flag client = -1;
Flag termination = 0;  // the signal that came first
Flag over = 0;

// What handlers call is what they may call (signal-safety(7)).
void end_stream_on(int signal) {
  const int interrupted_errno = errno;
  if (termination == 0) {
    termination = signal;
    alarm(static_cast<unsigned>(shutdown_grace.count()));
  }
  shutdown(client, SHUT_RD);
  errno = interrupted_errno;
}

void end_connection_on(int) {
  const int interrupted_errno = errno;
  over = 1;
  shutdown(client, SHUT_RDWR);  // wakes poll(2), too, and lets a send(2) that waits fail
  errno = interrupted_errno;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // not of calls with a timeout: their callers call again on EINTR (signal(7))
  sigaction(signal, &action, nullptr);
}

/// Once in a process: its children inherit it.
bool install_handlers() {
  for (const int number : ending_signals()) handle(number, end_stream_on);
  handle(SIGALRM, end_connection_on);
  return true;
}

void mask_termination(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : ending_signals()) sigaddset(&signals, number);
  pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

BlockingClient::BlockingClient(int fd) {
  [[maybe_unused]] static const bool installed = install_handlers();
  termination = 0;
  over = 0;
  client = fd;
  mask_termination(SIG_UNBLOCK);
}

BlockingClient::~BlockingClient() {
  mask_termination(SIG_BLOCK);
  client = -1;
  if (termination == 0) return;
  alarm(0);
  std::raise(termination);
}

bool BlockingClient::grace_over() { return over != 0; }

}  // namespace netdyno
