#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// State that the threads of a run agree on: how far each is, and when the load begins. Any thread may call it.
class Control {
 public:
  enum class Milestone : std::size_t {
    connected,  // every connection of the thread stands or has failed
    joined,     // the server knows every client of the thread
    sent,       // chat: all that will be sent stands in `intended`
    sliced,     // a slice of the thread is over: all that it sent is answered or given up
    finished,   // nothing more will be measured
    count
  };

  explicit Control(std::size_t threads) : threads_(threads) {}

  void reach(Milestone milestone) {
    const std::lock_guard lock{mutex_};
    ++reached_[static_cast<std::size_t>(milestone)];
    changed_.notify_all();
  }

  /// All threads will reach it once more.
  void forget(Milestone milestone) {
    const std::lock_guard lock{mutex_};
    reached_[static_cast<std::size_t>(milestone)] = 0;
  }

  /// Waits until all threads are there, or until `deadline`; true in the first case.
  bool wait_for(Milestone milestone, Nanos deadline) {
    std::unique_lock lock{mutex_};
    const auto all_there = [&] { return reached_[static_cast<std::size_t>(milestone)] == threads_; };
    if (deadline == never) {
      changed_.wait(lock, all_there);
      return true;
    }
    // steady_clock is CLOCK_MONOTONIC in libstdc++, the clock of Nanos.
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds{deadline}};
    return changed_.wait_until(lock, until, all_there);
  }

  /// Set before the threads are woken to do what it says; 0 until then.
  std::atomic<std::uint32_t> established{0};  // connections of all threads, valid from `joining` on
  std::atomic<bool> joining{false};           // chat: find out whether the server knows every client
  std::atomic<Nanos> start{0};                // when the load begins; never: there is nothing to load

  /// --turns: how many slices were named before the one that begins at `start`, with those that were missed. Set before
  /// `start` is.
  std::atomic<std::uint64_t> turn{0};
  /// The same: whether the slice before counts.
  std::atomic<bool> slice_counts{false};
  /// A thread could not finish its slice, so that none can follow.
  std::atomic<bool> is_stuck{false};
  std::atomic<std::uint64_t> sent_in_slice{0};

  /// The planned end of the window. Set before `interrupt` is called.
  std::atomic<Nanos> window_end{never};
  /// The end where it comes earlier (`interrupt`, Worker::end_for_all), and the end of the wait for the last answers
  /// where `interrupt` sets it.
  std::atomic<Nanos> end_early{never};
  std::atomic<Nanos> give_up{never};
  static_assert(std::atomic<Nanos>::is_always_lock_free);

  /// Before the window's end: ends the window now, and the wait for the last answers one second later. After it: ends
  /// that wait now. The caller must wake the threads. May run in a signal handler.
  void interrupt(Nanos now) {
    const bool over = std::min(end_early.load(), window_end.load()) <= now;
    if (!over) end_early = now;
    give_up = over ? now : now + patience_with_last_answers;
  }

  /// --count: messages of the window that no thread has taken yet, and threads that have the answers to all of theirs
  /// when none is left, or no connection any more.
  std::atomic<std::int64_t> left{0};
  std::atomic<std::size_t> answered{0};
  std::size_t threads() const { return threads_; }
  /// Threads whose last connection ended before the window did, and when the last of all threads was without one.
  std::atomic<std::size_t> without_connections{0};
  std::atomic<Nanos> load_ended{never};

  /// Deliveries that sent messages still owe, over all threads that have stopped sending.
  std::atomic<std::int64_t> owed{0};
  std::atomic<std::size_t> draining{0};    // threads that have stopped sending and stand in `owed`
  std::atomic<std::uint64_t> intended{0};  // what these threads meant to send
  std::atomic<bool> owes_others{false};    // a part of a room: what other programs' messages owe is not in `owed` yet
  /// --turns: before a slice begins, while all threads wait for it.
  void begin_slice() {
    forget(Milestone::sliced);
    forget(Milestone::sent);
    sent_in_slice = 0;
    owed = 0;
    draining = 0;
    intended = 0;
  }
  bool all_delivered() const { return draining == threads_ && !owes_others && owed <= 0; }

 private:
  static constexpr Nanos patience_with_last_answers = one_second;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t threads_;
  std::array<std::size_t, static_cast<std::size_t>(Milestone::count)> reached_{};
};

}  // namespace netdyno::load
