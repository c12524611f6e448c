#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "lib/net/descriptor.hpp"

namespace netdyno {

/// Something that epoll reports on.
class Watched {
 public:
  virtual void on_events(std::uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

/// The kernel's side of a loop: epoll for descriptors, one timerfd for time. One thread. Dies where it cannot go on.
class Poller {
 public:
  using Clock = std::chrono::steady_clock;

  /// A wait first asks the kernel again and again for `busy_poll`: on loopback, where no device can be polled
  /// (SO_BUSY_POLL), this is what a program can do to be spared the wake-up.
  explicit Poller(std::chrono::nanoseconds busy_poll = {});

  /// Registers `fd` until it is closed. False when the kernel has no room for it (epoll_ctl(2): ENOMEM, ENOSPC).
  [[nodiscard]] bool watch(int fd, std::uint32_t events, Watched& watched);
  /// Changes what a registered `fd` is watched for; reported at once if it is so already.
  void rewatch(int fd, std::uint32_t events, Watched& watched);
  /// For a registered `fd` that stays open.
  void unwatch(int fd);

  /// Ends a wait at `deadline`, in the place of what was set before. timerfd(2) is exact, where a timeout of
  /// epoll_wait(2) counts in milliseconds and that of epoll_pwait2(2) has a slack of 0.1% and 50 us at least.
  void set_alarm(Clock::time_point deadline);

  /// Calls on_events for what has happened; with `block` it waits until something has.
  void wait(bool block);

 private:
  int take_events(int timeout_ms);

  const std::chrono::nanoseconds busy_poll_;
  UniqueFd epoll_;
  UniqueFd timer_;
  Clock::time_point alarm_{};  // what timer_ is set to
  std::array<epoll_event, 256> events_;
};

}  // namespace netdyno
