#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace netdyno {

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

/// What the awaitables of this folder have in common: they always wait, and bring nothing back.
struct AlwaysWait {
  bool await_ready() const noexcept { return false; }
  void await_resume() const noexcept {}
};

}  // namespace netdyno
