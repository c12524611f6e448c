#include "lib/server/children.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "lib/session/counters.hpp"

namespace netdyno {
namespace {

/// SIGKILL when the parent dies; it may have died before this call (prctl(2), PR_SET_PDEATHSIG).
void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1);
}

/// The others go on, but a crash must not pass in silence.
void report_crash(pid_t child, int status) {
  if (WIFSIGNALED(status))
    std::fprintf(stderr, "%s: child %d was ended by signal %d (%s)\n", program_invocation_short_name, child,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    std::fprintf(stderr, "%s: child %d ended with exit code %d\n", program_invocation_short_name, child,
                 WEXITSTATUS(status));
}

}  // namespace

Children::Children() {
  std::signal(SIGCHLD, SIG_DFL);  // a program may be started with it ignored, and could then wait for no child
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ended_ = UniqueFd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!ended_) die_errno("signalfd", errno);
}

pid_t Children::fork_child() {
  try {
    running_.push_back(0);  // before the fork: a child that is not remembered could not be ended
  } catch (const std::bad_alloc&) {
    return -1;
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    die_with(parent);
    Counters::use_shard(started_);
  } else if (child > 0) {
    running_.back() = child;
    ++started_;
  } else {
    running_.pop_back();
  }
  return child;
}

std::size_t Children::reap() {
  signalfd_siginfo ignored;  // pending signals of one kind are merged, so it does not say who has ended
  while (read(ended_.get(), &ignored, sizeof ignored) > 0) {
  }
  std::size_t reaped = 0;
  int status = 0;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0; ++reaped) {
    std::erase(running_, child);
    report_crash(child, status);
  }
  return reaped;
}

bool Children::finish(std::chrono::nanoseconds grace) {
  const auto deadline = std::chrono::steady_clock::now() + grace;
  send_to_all(SIGTERM);
  if (wait_until(deadline)) return true;
  send_to_all(SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  running_.clear();
  return false;
}

bool Children::wait_until(std::chrono::steady_clock::time_point deadline) {
  for (reap(); !running_.empty(); reap()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd watched{ended_.get(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left.count()));
  }
  return true;
}

void Children::send_to_all(int signal) const {
  for (const pid_t child : running_) kill(child, signal);
}

}  // namespace netdyno
