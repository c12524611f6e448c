#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

class Fiber;

/// The continuation of whatever waits on a fiber.
class FiberHandle {
 public:
  FiberHandle() = default;
  explicit FiberHandle(Fiber& fiber) : fiber_(&fiber) {}

  void operator()() const;
  explicit operator bool() const { return fiber_ != nullptr; }

 private:
  Fiber* fiber_ = nullptr;
};
static_assert(Continuation<FiberHandle>);

/// Stacks of one size, with a guard page below each: an overflow ends the program and changes nothing of another fiber.
/// The stack of a fiber that has ended serves the next one, as the memory of a coroutine's frame does. Loop's thread
/// only.
class Stacks {
 public:
  using Stack = boost::context::stack_context;

  /// Room for the 64 KiB that end_stream() has on its stack. Only pages that a fiber has touched take memory.
  static constexpr std::size_t stack_size = 128 << 10;

  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() {
    while (unused_ != nullptr) unmap(take());
  }

  /// Prepares a stack for the next fiber. False when the kernel has no room for it.
  [[nodiscard]] bool prepare() {
    try {
      if (unused_ == nullptr) give_back(memory_.allocate());
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  /// A source of stacks in the form that boost::context::fiber copies.
  struct Allocator {
    Stack allocate() const { return stacks.take(); }
    void deallocate(const Stack& stack) const noexcept { stacks.give_back(stack); }

    Stacks& stacks;
  };

 private:
  /// An unused stack is an item of a list. The item stands at its upper end, in a page that is touched already.
  struct Unused {
    Stack stack;
    Unused* next;
  };

  Stack take() {
    if (unused_ == nullptr) return memory_.allocate();
    const Unused first = *unused_;
    unused_ = first.next;
    return first.stack;
  }

  void give_back(const Stack& stack) noexcept {
    unused_ = new (static_cast<char*>(stack.sp) - sizeof(Unused)) Unused{stack, unused_};
  }

  void unmap(Stack stack) noexcept { memory_.deallocate(stack); }

  boost::context::protected_fixedsize_stack memory_{stack_size};
  Unused* unused_ = nullptr;
};

/// Owns a fiber: work on a stack of its own, which any function that it calls may suspend. Destroying the Fiber unwinds
/// that stack wherever it waits, so nothing may resume it after that. Loop's thread only.
class Fiber {
 public:
  Fiber() = default;
  template <typename Work>
  Fiber(Stacks& stacks, Work work) {
    start(stacks, std::move(work));
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs `work()` at once, up to where it first waits.
  template <typename Work>
  void start(Stacks& stacks, Work work) {
    suspended_ = boost::context::fiber{std::allocator_arg, Stacks::Allocator{stacks},
                                       [this, work = std::move(work)](boost::context::fiber&& resumer) {
                                         resumer_ = std::move(resumer);
                                         work();
                                         return std::move(resumer_);
                                       }};
    resume();
  }

  /// On the fiber, at any depth of calls: suspends it, and calls `wait(me)`, which sees to it that the fiber is resumed
  /// when the wait is over.
  template <typename Wait>
  static void suspend(const Wait& wait) {
    Fiber& me = *running_;
    wait(FiberHandle{me});
    me.resumer_ = std::move(me.resumer_).resume();
  }

  void resume() {
    Fiber* const resumer = std::exchange(running_, this);  // a fiber that accepts starts those of connections
    suspended_ = std::move(suspended_).resume();
    running_ = resumer;
  }

 private:
  static inline Fiber* running_ = nullptr;

  boost::context::fiber resumer_;    // while it runs: where it goes when it suspends or ends
  boost::context::fiber suspended_;  // while it waits: where it goes on
};

inline void FiberHandle::operator()() const { fiber_->resume(); }

/// Waits for input or its end; see EpollConnection::when_readable.
inline void wait_for_input(EpollConnection<FiberHandle>& client) {
  Fiber::suspend([&client](FiberHandle me) { client.when_readable(me); });
}

/// Waits until all that was queued is sent, or cannot be. To be called only where something is unsent.
inline void wait_until_sent(EpollConnection<FiberHandle>& client) {
  Fiber::suspend([&client](FiberHandle me) { client.when_sent(me); });
}

/// Waits until the time has passed, or the peer has reset; see EpollConnection::when_passed.
inline void wait_unless_reset(EpollConnection<FiberHandle>& client, std::chrono::nanoseconds duration) {
  Fiber::suspend([&client, duration](FiberHandle me) { client.when_passed(duration, me); });
}

inline void wait_until_readable(Gate<FiberHandle>& gate) {
  Fiber::suspend([&gate](FiberHandle me) { gate.when_readable(me); });
}

inline void sleep_until(Loop<FiberHandle>& loop, Poller::Clock::time_point deadline) {
  Fiber::suspend([&loop, deadline](FiberHandle me) { loop.call_at(deadline, me); });
}

inline void sleep_for(Loop<FiberHandle>& loop, std::chrono::nanoseconds duration) {
  sleep_until(loop, Poller::Clock::now() + duration);
}

/// See Loop::in_a_turn_for_long_work.
inline void wait_for_long_work(Loop<FiberHandle>& loop) {
  Fiber::suspend([&loop](FiberHandle me) { loop.in_a_turn_for_long_work(me); });
}

}  // namespace netdyno
