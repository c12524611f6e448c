#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lib/net/descriptor.hpp"
#include "lib/server/lifecycle.hpp"

namespace netdyno {

/// The processes that a server forks (docs/adr/processes.md): their start and their end. What they do, and when the
/// parent reaps them, is the server's loop. It reaps every child of its process. Main thread of the parent only.
class Children {
 public:
  /// Blocks SIGCHLD, in the children too.
  Children();

  /// Becomes readable when a child ends: reap() then.
  int ended() const { return ended_.get(); }

  /// Forks a child that calls `serve` and ends with it, at the latest with its parent, however that ends. An exception
  /// ends the child alone. SIGTERM stays blocked in it where termination_signals() was called, and that descriptor is
  /// then readable for the child's own signals (signalfd(2)), except in an epoll instance made before the fork. False
  /// when the system has no process or memory left (fork(2)).
  template <typename Serve>
  bool start(Serve&& serve) {
    const pid_t child = fork_child();
    if (child == 0) run(std::forward<Serve>(serve));
    return child > 0;
  }

  /// Reaps those that have ended, and returns how many. Each that crashed is a line on stderr.
  std::size_t reap();

  std::size_t count() const { return running_.size(); }

  /// Sends SIGTERM to all and waits for their end. Kills those that are left after the grace: false then.
  bool finish(std::chrono::nanoseconds grace = shutdown_grace);

 private:
  template <typename Serve>
  [[noreturn]] static void run(Serve&& serve) noexcept {
    serve();
    std::_Exit(0);  // what the parent has on its stack and in its buffers is the parent's
  }

  pid_t fork_child();
  bool wait_until(std::chrono::steady_clock::time_point deadline);
  void send_to_all(int signal) const;

  UniqueFd ended_;
  std::vector<pid_t> running_;  // not yet reaped, so no other process can have these ids
  std::size_t started_ = 0;
};

}  // namespace netdyno
