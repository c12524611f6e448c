#pragma once

#include <algorithm>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// How long before a message is due a thread wakes and spins (docs/adr/wake-early.md): as late as timers wake it here,
/// at their 90th percentile, and no longer than `most`. Under load a thread wakes sooner than at rest, or later beside
/// others, so it goes on learning from each timer that has woken it. Owning thread only.
class EarlyWake {
 public:
  EarlyWake() = default;  // none
  EarlyWake(Nanos lateness, Nanos most, bool learns) : lateness_(lateness), most_(most), learns_(learns) {}

  Nanos early() const { return std::min(lateness_, most_); }

  /// A timer has woken the thread so long after its moment.
  void note_wake(Nanos late) {
    if (!learns_) return;
    lateness_ = std::clamp<Nanos>(lateness_ + (late > lateness_ ? up : -down), 0, longest);
  }

 private:
  // Nine in ten steps down are one up: at rest at the 90th percentile (stochastic approximation, Robbins and Monro
  // 1951). Small beside a lateness of 10 us and more, and from 100 us down to that within a second of 1000 messages.
  static constexpr Nanos up = 900, down = 100;
  static constexpr Nanos longest = 100'000;

  Nanos lateness_ = 0;
  Nanos most_ = 0;
  bool learns_ = false;
};

/// Decides whether a thread that waits for replies alone polls for a while before it sleeps. A sleeper has to be woken,
/// and where both are on one machine, the sender of the reply does that and pays for it (docs/adr/wake-early.md). Polls
/// as long as most of these polls find something; when they do not, one in `rest` tries again. Owning thread only.
class ReplySpin {
 public:
  static constexpr Nanos length = 20'000;

  ReplySpin() = default;  // never
  ReplySpin(bool polls, bool learns) : polls_(polls), learns_(learns) {}

  /// Once for each wait.
  bool decide_to_poll() {
    if (!polls_) return false;
    return !learns_ || worth_ > 0 || ++left_out_ % rest == 0;
  }

  /// A poll that did not find something at once has found something, or was in vain.
  void note_poll(bool found) { worth_ = std::clamp(worth_ + (found ? 1 : -1), 0, most_worth); }

 private:
  static constexpr int most_worth = 16;
  static constexpr unsigned rest = 64;

  bool polls_ = false;
  bool learns_ = false;
  int worth_ = most_worth;
  unsigned left_out_ = 0;
};

/// Whether replies may wait in the kernel until the next message is due (docs/adr/kernel-clock.md). Their times end
/// with the kernel's stamps, so to be woken by each of them costs CPU and tells nothing. As long as all replies bear a
/// stamp and come in one piece: what comes in several may be waiting until the first has been read. Owning thread only.
class LateReads {
 public:
  /// After a message has left. Replies that take longer are listened for, and so is everything that needs an answer.
  static constexpr Nanos longest = 1'000'000;

  explicit LateReads(bool allowed) : allowed_(allowed) {}

  bool allowed() const { return allowed_; }
  /// Whether what was read could as well have been read later; once it could not, nothing waits any more.
  void note(bool could_wait) { allowed_ = allowed_ && could_wait; }
  void note_sent(Nanos sent_at) { until_ = sent_at + longest; }
  /// Replies may wait until then.
  Nanos until() const { return allowed_ ? until_ : 0; }

 private:
  bool allowed_;
  Nanos until_ = 0;
};

}  // namespace netdyno::load
