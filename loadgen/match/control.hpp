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
#include "loadgen/plan/plan.hpp"

namespace netdyno::load {

/// State that the threads of a run agree on. The main thread says when the load begins and ends, each worker how far it
/// is; a comment names the thread that may call a function.
///
/// Most values are relaxed, because something else orders them: the mutex of a milestone (the main thread reads after
/// `wait_for` what a worker wrote before `reach`), or the start (a worker reads after `read_start` what the main thread
/// wrote before `set_start`). Where neither is so, a comment says why the order suffices.
class Control {
 public:
  enum class Milestone : std::size_t {
    connected,  // every connection of the thread stands or has failed
    joined,     // the server knows every client of the thread
    sent,       // chat: all that will be sent is counted (`begin_drain`)
    sliced,     // a slice of the thread is over: all that it sent is answered or given up
    finished,   // nothing more will be measured
    count
  };

  explicit Control(const LoadPlan& plan)
      : threads_(plan.threads),
        unclaimed_(static_cast<std::int64_t>(plan.count)),
        lacks_others_(plan.is_part_of_a_room()) {}

  // --- milestones

  /// Worker.
  void reach(Milestone milestone) {
    const std::lock_guard lock{mutex_};
    ++reached_[static_cast<std::size_t>(milestone)];
    changed_.notify_all();
  }

  /// Main thread. Waits until all workers are there, or until `deadline`; true in the first case.
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

  // --- before the load

  /// Worker, before it reaches `connected`: so many of its connections stand.
  void add_established(std::uint32_t connections) { established_.fetch_add(connections, std::memory_order_relaxed); }
  /// Main thread after `connected`, workers after the start: the connections of all threads.
  std::uint32_t read_established() const { return established_.load(std::memory_order_relaxed); }

  /// Main thread, for chat: the workers find out whether the server knows every client. The caller must wake them.
  /// Released and acquired, as the start is.
  void begin_joining() { joining_.store(true, std::memory_order_release); }
  /// Worker.
  bool is_joining() const { return joining_.load(std::memory_order_acquire); }

  // --- the start, of the load or (--turns) of each slice

  /// Main thread: the load begins at this moment; never: there is nothing more to load. The caller must wake the
  /// workers, which wait in their transports.
  void set_start(Nanos start) {
    start_.store(start, std::memory_order_release);
    start_.notify_all();
  }
  /// Worker. 0 before the first start is set.
  Nanos read_start() const { return start_.load(std::memory_order_acquire); }
  /// Worker.
  bool has_start() const { return read_start() != 0; }
  /// Worker that must not serve its connections meanwhile. Sleeps until the start is no longer `last`.
  void wait_for_next_start(Nanos last) const { start_.wait(last, std::memory_order_acquire); }

  // --- slices (--turns)

  /// Main thread, between slices: a line has named another one.
  void count_slice() { slice_number_.fetch_add(1, std::memory_order_relaxed); }
  /// Worker, after the start: the number of the slice among those that were named, missed ones too; 0 without --turns.
  std::uint64_t read_slice_number() const { return slice_number_.load(std::memory_order_relaxed); }

  /// Main thread, between slices: whether the last one counts.
  void settle_slice(bool counts) { last_slice_counts_.store(counts, std::memory_order_relaxed); }
  /// Worker, after the next start.
  bool does_last_slice_count() const { return last_slice_counts_.load(std::memory_order_relaxed); }

  /// Main thread, before a slice begins, while all workers wait for its start.
  void begin_slice() {
    forget(Milestone::sliced);
    forget(Milestone::sent);
    sent_in_slice_.store(0, std::memory_order_relaxed);
    pending_deliveries_.store(0, std::memory_order_relaxed);
    draining_.store(0, std::memory_order_relaxed);
    intended_.store(0, std::memory_order_relaxed);
  }
  /// Worker: its slice is over, in which it sent so many messages. `stuck`: it could not finish the slice, so that none
  /// can follow.
  void end_slice(std::uint64_t sent, bool stuck) {
    sent_in_slice_.fetch_add(sent, std::memory_order_relaxed);
    if (stuck) is_stuck_.store(true, std::memory_order_relaxed);
    reach(Milestone::sliced);
  }
  /// Main thread, after `sliced`.
  std::uint64_t read_sent_in_slice() const { return sent_in_slice_.load(std::memory_order_relaxed); }
  /// Main thread, after `sliced`: whether a worker is.
  bool is_stuck() const { return is_stuck_.load(std::memory_order_relaxed); }

  // --- the end of the window. Its moments say nothing of other data, so they are relaxed on all sides.

  /// Main thread: the planned end of the window. never, as at first: an interrupt ends the window that might begin.
  void plan_window_end(Nanos end) { window_end_.store(end, std::memory_order_relaxed); }

  /// Any thread, also in a signal handler. Before the window's end: ends the window now, and the wait for the last
  /// answers one second later. After it: ends that wait now. The caller must wake the workers.
  void interrupt(Nanos now) {
    const Nanos planned = window_end_.load(std::memory_order_relaxed);
    const bool over = std::min(read_early_end(), planned) <= now;
    if (!over) end_window(now);
    give_up_.store(over ? now : now + patience_with_last_answers, std::memory_order_relaxed);
  }
  /// Any thread, also in a signal handler. Ends the window at this moment, unless it ends before.
  void end_window(Nanos end) {
    Nanos earliest = read_early_end();
    while (end < earliest && !end_early_.compare_exchange_weak(earliest, end, std::memory_order_relaxed)) {
    }
  }

  /// Workers in every turn of their loops, the main thread after `finished`: the end where it is not the planned one.
  Nanos read_early_end() const { return end_early_.load(std::memory_order_relaxed); }
  /// Worker, in every turn of its loop: when an interrupt ends the wait for the last answers.
  Nanos read_give_up() const { return give_up_.load(std::memory_order_relaxed); }

  // --- the end of the load before that of the window

  /// Worker, for --count: takes a message of the window; false where none is left. Only the count itself is shared.
  bool claim_message() { return unclaimed_.fetch_sub(1, std::memory_order_relaxed) > 0; }
  /// Worker, for --count.
  bool is_count_exhausted() const { return unclaimed_.load(std::memory_order_relaxed) <= 0; }

  /// Worker, once, for --count: it has the answers to all that it took and none is left, or has no connection any more.
  /// True for the last of all workers, which ends the window. Acquires what the others released, so that its clock is
  /// read after the last answer of each.
  bool report_answered() { return answered_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_; }

  /// Worker, once: its last connection ended before the window did.
  void report_disconnected(Nanos now) {
    if (disconnected_.fetch_add(1, std::memory_order_relaxed) + 1 == threads_)
      load_ended_.store(now, std::memory_order_relaxed);
  }
  /// Main thread, after `finished`: when the last of all workers was without a connection; never: some had one.
  Nanos read_load_end() const { return load_ended_.load(std::memory_order_relaxed); }

  // --- chat: the wait for the last deliveries

  /// Worker, once a slice: it sends no more. `pending`: the deliveries that its messages bring to all threads, less
  /// those that it has received itself. Releases its place in the count after the sum: a thread that sees the count
  /// complete sees the whole sum.
  void begin_drain(std::int64_t pending, std::uint64_t intended) {
    pending_deliveries_.fetch_add(pending, std::memory_order_relaxed);
    intended_.fetch_add(intended, std::memory_order_relaxed);
    draining_.fetch_add(1, std::memory_order_release);
    reach(Milestone::sent);
  }
  /// Worker that drains, at each delivery.
  void note_delivery() { pending_deliveries_.fetch_sub(1, std::memory_order_relaxed); }
  /// Main thread, after `sent`: the messages that all workers meant to send.
  std::uint64_t read_intended() const { return intended_.load(std::memory_order_relaxed); }
  /// Main thread of a part of a room, once: deliveries that the messages of other programs bring to this one. In the
  /// same order.
  void add_pending_of_others(std::int64_t deliveries) {
    pending_deliveries_.fetch_add(deliveries, std::memory_order_relaxed);
    lacks_others_.store(false, std::memory_order_release);
  }
  /// Worker that drains: whether all threads do, and no delivery is pending any more.
  bool is_all_delivered() const {
    return draining_.load(std::memory_order_acquire) == threads_ && !lacks_others_.load(std::memory_order_acquire) &&
           !has_pending_deliveries();
  }
  /// Worker, at the end of its slice.
  bool has_pending_deliveries() const { return pending_deliveries_.load(std::memory_order_relaxed) > 0; }

 private:
  static constexpr Nanos patience_with_last_answers = one_second;
  static_assert(std::atomic<Nanos>::is_always_lock_free);  // a signal handler uses them

  /// All workers will reach it once more.
  void forget(Milestone milestone) {
    const std::lock_guard lock{mutex_};
    reached_[static_cast<std::size_t>(milestone)] = 0;
  }

  const std::size_t threads_;
  std::mutex mutex_;  // for reached_
  std::condition_variable changed_;
  std::array<std::size_t, static_cast<std::size_t>(Milestone::count)> reached_{};

  std::atomic<std::uint32_t> established_{0};
  std::atomic<bool> joining_{false};
  std::atomic<Nanos> start_{0};

  std::atomic<std::uint64_t> slice_number_{0};
  std::atomic<bool> last_slice_counts_{false};
  std::atomic<bool> is_stuck_{false};
  std::atomic<std::uint64_t> sent_in_slice_{0};

  std::atomic<Nanos> window_end_{never};
  std::atomic<Nanos> end_early_{never};
  std::atomic<Nanos> give_up_{never};

  std::atomic<std::int64_t> unclaimed_;  // below 0 by as many threads as found none left
  std::atomic<std::size_t> answered_{0};
  std::atomic<std::size_t> disconnected_{0};
  std::atomic<Nanos> load_ended_{never};

  std::atomic<std::int64_t> pending_deliveries_{0};  // over the threads in draining_
  std::atomic<std::size_t> draining_{0};
  std::atomic<std::uint64_t> intended_{0};  // by the threads in draining_
  std::atomic<bool> lacks_others_;  // a part of a room: pending_deliveries_ has none of other programs' messages yet
};

}  // namespace netdyno::load
