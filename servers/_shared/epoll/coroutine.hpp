#pragma once

#include <chrono>
#include <coroutine>
#include <exception>
#include <utility>

#include "servers/_shared/epoll/backend_pool.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// The continuation of whatever waits by co_await.
using Coroutine = std::coroutine_handle<>;
static_assert(Continuation<Coroutine>);

/// Owns a coroutine. It runs at once, up to where it first waits; destroying the Task destroys it wherever it waits,
/// so nothing may resume it after that.
class Task {
 public:
  struct promise_type {
    Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  Task() = default;
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}

  std::coroutine_handle<promise_type> coroutine_;
};

/// co_await: suspends, and calls `wait(me)`, which sees to it that the coroutine is resumed when the wait is over.
template <typename Wait>
struct Suspend {
  Wait wait;
  bool await_ready() const noexcept { return false; }
  void await_suspend(Coroutine me) const { wait(me); }
  void await_resume() const noexcept {}
};

/// Input or its end; see EpollConnection::when_readable.
inline auto input(EpollConnection<Coroutine>& client) {
  return Suspend{[&client](Coroutine me) { client.when_readable(me); }};
}

/// All that was queued is sent, or cannot be. To be asked for only where something is unsent.
inline auto sent(EpollConnection<Coroutine>& client) {
  return Suspend{[&client](Coroutine me) { client.when_sent(me); }};
}

/// The time has passed, or the peer has reset; see EpollConnection::when_passed.
inline auto passed(EpollConnection<Coroutine>& client, std::chrono::nanoseconds duration) {
  return Suspend{[&client, duration](Coroutine me) { client.when_passed(duration, me); }};
}

/// The backend has replied after `duration`; see BackendPool::when_replied.
inline auto replied(BackendPool<Coroutine>& pool, std::chrono::nanoseconds duration) {
  return Suspend{[&pool, duration](Coroutine me) { pool.when_replied(duration, me); }};
}

inline auto readable(Gate<Coroutine>& gate) {
  return Suspend{[&gate](Coroutine me) { gate.when_readable(me); }};
}

inline auto sleep_until(Loop<Coroutine>& loop, Poller::Clock::time_point deadline) {
  return Suspend{[&loop, deadline](Coroutine me) { loop.call_at(deadline, me); }};
}

inline auto sleep_for(Loop<Coroutine>& loop, std::chrono::nanoseconds duration) {
  return sleep_until(loop, Poller::Clock::now() + duration);
}

/// See Loop::in_a_turn_for_long_work.
inline auto turn_for_long_work(Loop<Coroutine>& loop) {
  return Suspend{[&loop](Coroutine me) { loop.in_a_turn_for_long_work(me); }};
}

}  // namespace netdyno
