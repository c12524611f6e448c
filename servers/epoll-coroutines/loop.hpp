#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <queue>
#include <vector>

#include "common/socket.hpp"
#include "fifo.hpp"
#include "task.hpp"

namespace netdyno {

/// Something that epoll reports on.
class Watched {
 public:
  virtual void on_events(std::uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

/// The event loop: epoll for descriptors, a heap behind one timerfd for time. One thread. It resumes coroutines only
/// from turn(), one after the other and never one from within another.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  Loop();

  /// Registers `fd` until it is closed. False when the kernel has no room for it (epoll_ctl(2): ENOMEM, ENOSPC).
  [[nodiscard]] bool watch(int fd, std::uint32_t events, Watched& watched);
  /// Changes what a registered `fd` is watched for; reported at once if it is so already.
  void rewatch(int fd, std::uint32_t events, Watched& watched);

  /// Waits for something to happen, and resumes all that it concerns.
  void turn();

  /// In this turn if called from on_events, else in the next. Each coroutine waits in one place only.
  void resume_later(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

  /// Waits for a duration. timerfd(2) is exact, where a timeout of epoll_wait(2) counts in milliseconds and that of
  /// epoll_pwait2(2) has a slack of 0.1% and 50 us at least.
  auto sleep(std::chrono::nanoseconds duration) {
    struct Sleep : AlwaysWait {
      Loop& loop;
      Clock::time_point deadline;
      void await_suspend(std::coroutine_handle<> me) const { loop.timers_.push({deadline, me}); }
    };
    return Sleep{{}, *this, Clock::now() + duration};
  }

  /// Waits for a turn in which nobody else does long work, so that neither I/O nor the end waits for more than one.
  auto turn_for_long_work() {
    struct Queue : AlwaysWait {
      Loop& loop;
      void await_suspend(std::coroutine_handle<> me) const { loop.long_work_.push(me); }
    };
    return Queue{{}, *this};
  }

 private:
  struct Timer {
    Clock::time_point deadline;
    std::coroutine_handle<> coroutine;
    bool operator>(const Timer& other) const { return deadline > other.deadline; }
  };

  void arm_timer();
  void resume_due();
  void resume_ready();

  UniqueFd epoll_;
  UniqueFd timer_;
  Clock::time_point armed_{};  // what timer_ is set to
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> resuming_;
  Fifo<std::coroutine_handle<>> long_work_;
  std::array<epoll_event, 256> events_;
};

/// A descriptor that one coroutine waits for now and then. Armed for one event per wait (EPOLLONESHOT): while nobody
/// waits, it wakes nobody.
class Gate final : public Watched {
 public:
  Gate(Loop& loop, int fd);

  auto readable() {
    struct Readable : AlwaysWait {
      Gate& gate;
      void await_suspend(std::coroutine_handle<> me) const {
        gate.waiting_ = me;
        gate.loop_.rewatch(gate.fd_, EPOLLIN | EPOLLONESHOT, gate);
      }
    };
    return Readable{{}, *this};
  }

 private:
  void on_events(std::uint32_t) override { loop_.resume_later(waiting_); }

  Loop& loop_;
  int fd_;
  std::coroutine_handle<> waiting_;
};

}  // namespace netdyno
