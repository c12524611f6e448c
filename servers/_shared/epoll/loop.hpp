#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "lib/net/epoll/poller.hpp"
#include "lib/server/fifo.hpp"

namespace netdyno {

/// Resumed when a wait is over: a coroutine, or a callback. Copied freely, called once; false when there is none.
/// It is the one thing that the contestants over this loop differ in (docs/adr/one-work-function.md).
template <typename T>
concept Continuation = std::default_initializable<T> && std::copyable<T> && requires(T go_on) {
  go_on();
  static_cast<bool>(go_on);
};

/// A call that a loop was asked for at a time.
struct Alarm {
  std::size_t slot = 0;
  std::uint64_t number = 0;
};

/// The event loop. One thread. It calls continuations only from turn(), one after the other and never one from within
/// another.
template <Continuation Next>
class Loop {
 public:
  using Clock = Poller::Clock;

  explicit Loop(std::chrono::nanoseconds busy_poll = {}) : poller_(busy_poll) {}

  Poller& poller() { return poller_; }

  /// Waits for something to happen, and calls all that it concerns.
  void turn() {
    if (!timers_.empty()) poller_.set_alarm(timers_.top().deadline);
    poller_.wait(ready_.empty() && long_work_.empty());
    queue_due();
    call_ready();
    if (!long_work_.empty()) do_long_work();
  }

  /// In this turn if called from on_events, else in the next.
  void call_soon(Next next) { ready_.push_back(next); }
  /// The result is for cancel().
  Alarm call_at(Clock::time_point deadline, Next next) {
    if (free_slots_.empty()) {
      free_slots_.push_back(waiting_.size());
      waiting_.emplace_back();
    }
    const Alarm alarm{free_slots_.back(), ++alarms_};
    free_slots_.pop_back();
    waiting_[alarm.slot] = {alarm.number, next};
    timers_.push({deadline, alarm.slot});
    return alarm;
  }
  /// turn() returns by then, so that its caller reads the clock.
  void wake_at(Clock::time_point deadline) { call_at(deadline, Next{}); }
  /// Nothing is called at that time any more. False where it has been, or is about to be.
  bool cancel(Alarm alarm) {
    PendingCall& waiting = waiting_[alarm.slot];
    if (waiting.number != alarm.number || !waiting.next) return false;
    waiting.next = Next{};  // the slot is free when its time has come
    return true;
  }
  /// One after the other, so that neither I/O nor the end waits for more than one, or for `long_work_per_turn` of short
  /// ones.
  void in_a_turn_for_long_work(Next next) { long_work_.push(next); }

 private:
  struct Timer {
    Clock::time_point deadline;
    std::size_t slot;
    bool operator>(const Timer& other) const { return deadline > other.deadline; }
  };
  struct PendingCall {
    std::uint64_t number = 0;
    Next next{};
  };

  void queue_due() {
    if (timers_.empty()) return;
    for (const auto now = Clock::now(); !timers_.empty() && timers_.top().deadline <= now; timers_.pop()) {
      const std::size_t slot = timers_.top().slot;
      if (const Next next = std::exchange(waiting_[slot].next, Next{})) call_soon(next);
      free_slots_.push_back(slot);
    }
  }

  void call_ready() {
    calling_.swap(ready_);
    for (Next& next : calling_) next();
    calling_.clear();
  }

  void do_long_work() {
    const auto enough = Clock::now() + long_work_per_turn;
    do {
      long_work_.pop()();
    } while (!long_work_.empty() && Clock::now() < enough);
  }

  /// A turn asks the kernel, which costs as much as a short piece of work. Asio calls all handlers that are ready, up
  /// to 128, before it asks again.
  static constexpr std::chrono::milliseconds long_work_per_turn{1};

  Poller poller_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<PendingCall> waiting_;  // by the slot of their timer
  std::vector<std::size_t> free_slots_;
  std::uint64_t alarms_ = 0;
  std::vector<Next> ready_;
  std::vector<Next> calling_;
  Fifo<Next> long_work_;
};

/// A descriptor that is waited for now and then, by one continuation at a time. Armed for one event per wait
/// (EPOLLONESHOT): without a wait, it wakes no thread.
template <Continuation Next>
class Gate final : public Watched {
 public:
  Gate(Loop<Next>& loop, int fd) : loop_(loop), fd_(fd) {
    if (!loop.poller().watch(fd, EPOLLONESHOT, *this)) die("epoll_ctl: no room to watch a descriptor");
  }

  void when_readable(Next next) {
    waiting_ = next;
    loop_.poller().rewatch(fd_, EPOLLIN | EPOLLONESHOT, *this);
  }

 private:
  void on_events(std::uint32_t) override { loop_.call_soon(waiting_); }

  Loop<Next>& loop_;
  int fd_;
  Next waiting_{};
};

}  // namespace netdyno
