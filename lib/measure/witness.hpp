#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace netdyno::load {

/// A core that is watched, and what it is called in the totals.
struct WatchedCore {
  std::string name;
  int core;
};

/// Sees when the machine lets nothing run on a core: a thread there sleeps for a moment at a time and notes when it
/// woke up late. It does nothing else and runs before server and generator where this user may, so what it notes is no
/// doing of theirs: another program in the kernel, which is not interrupted there (CONFIG_PREEMPT_NONE), or a
/// hypervisor that has taken the core away.
class Witness {
 public:
  using Clock = std::chrono::steady_clock;

  /// How often a core is checked, and the shortest pause, unless it is said otherwise.
  static constexpr std::chrono::nanoseconds usual = std::chrono::microseconds{500};

  /// Nothing ran on the core from when it should have, until it did.
  struct Pause {
    std::string name;
    Clock::time_point from;
    Clock::time_point to;
  };

  /// Checks each core this often: a pause is seen if a check is due at least `shortest` before its end, and counts
  /// from there. A check takes 2 to 30 us of the core. Dies where this process may not run on one of the cores.
  explicit Witness(const std::vector<WatchedCore>& cores, std::chrono::nanoseconds every = usual,
                   std::chrono::nanoseconds shortest = usual);

  /// Ends watching. Returns every pause, core by core.
  std::vector<Pause> stop();

 private:
  struct Watch {
    WatchedCore watched;
    std::vector<Pause> pauses;
    std::jthread thread;
  };

  std::vector<Watch> watches_;
};

}  // namespace netdyno::load
