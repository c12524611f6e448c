#pragma once

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "lib/server/lifecycle.hpp"
#include "lib/session/effects.hpp"

namespace netdyno {

/// The moment when a server that shuts down gives up unfinished work. Any thread.
class Grace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Only the first call counts.
  void start() {
    auto unset = never;
    end_.compare_exchange_strong(unset, (Clock::now() + shutdown_grace).time_since_epoch().count());
  }
  bool over() const { return Clock::now() >= end(); }
  Clock::time_point end() const { return Clock::time_point{Clock::duration{end_.load()}}; }

 private:
  static constexpr Clock::rep never = Clock::time_point::max().time_since_epoch().count();
  std::atomic<Clock::rep> end_{never};
};

/// burn_cpu, but `cut_short()` is asked every 10 ms. False when it said so.
template <typename CutShort>
bool burn_cpu_unless(CutShort&& cut_short, std::chrono::nanoseconds duration) {
  constexpr std::chrono::nanoseconds slice = std::chrono::milliseconds{10};
  for (; duration > slice; duration -= slice) {
    burn_cpu(slice);
    if (cut_short()) return false;
  }
  burn_cpu(duration);
  return true;
}

/// burn_cpu for a server with one thread: it holds up every client, and checks only for a shutdown signal (`signals` is
/// readable then), which starts the grace. False when the grace cut it short.
inline bool burn_cpu_unless_stopped(int signals, Grace& grace, std::chrono::nanoseconds duration) {
  const auto overdue = [&] {
    pollfd stop_signal{signals, POLLIN, 0};
    if (poll(&stop_signal, 1, 0) > 0) grace.start();
    return grace.over();
  };
  return burn_cpu_unless(overdue, duration);
}

}  // namespace netdyno
