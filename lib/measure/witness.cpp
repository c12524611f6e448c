#include "lib/measure/witness.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stop_token>

#include "lib/cli/die.hpp"
#include "lib/measure/process.hpp"

namespace netdyno::load {
namespace {

using Clock = Witness::Clock;

/// sched_setaffinity(2): a thread may leave the cores that its process was started on, but not those of its container.
void run_on(int core) {
  if (!bind_to_cores({core})) die("--witness: core " + std::to_string(core) + ": " + std::strerror(errno));
}

/// One above what this process was started with, if that is a real-time priority (sched(7)). Where RLIMIT_RTPRIO allows
/// no more it stays beside the others of its own, which leave the core within microseconds.
void run_first() {
  sched_param priority{};
  if (sched_getscheduler(0) != SCHED_FIFO || sched_getparam(0, &priority) != 0) return;
  ++priority.sched_priority;
  sched_setscheduler(0, SCHED_FIFO, &priority);
}

/// steady_clock is CLOCK_MONOTONIC here.
void sleep_until(Clock::time_point due) {
  const auto ns = due.time_since_epoch().count();
  const timespec wake_time{ns / 1'000'000'000, ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_time, nullptr);
}

void watch_core(const std::stop_token& stop, const WatchedCore& watched, std::chrono::nanoseconds every,
                std::chrono::nanoseconds shortest, std::vector<Witness::Pause>& pauses) {
  run_on(watched.core);
  run_first();
  prctl(PR_SET_TIMERSLACK, 1UL);  // prctl(2): else timers of this thread may fire 50 us late
  for (auto due = Clock::now(); !stop.stop_requested();) {
    due = std::max(due + every, Clock::now());
    sleep_until(due);
    const auto now = Clock::now();
    if (now - due >= shortest) pauses.push_back({watched.name, due, now});
  }
}

}  // namespace

Witness::Witness(const std::vector<WatchedCore>& cores, std::chrono::nanoseconds every,
                 std::chrono::nanoseconds shortest)
    : watches_(cores.size()) {
  for (std::size_t i = 0; i < cores.size(); ++i) {
    Watch& watch = watches_[i];
    watch.watched = cores[i];
    watch.thread = std::jthread{[&watch, every, shortest](const std::stop_token& stop) {
      watch_core(stop, watch.watched, every, shortest, watch.pauses);
    }};
  }
}

std::vector<Witness::Pause> Witness::stop() {
  std::vector<Pause> all;
  for (Watch& watch : watches_) {
    watch.thread.request_stop();
    watch.thread.join();
    std::ranges::move(watch.pauses, std::back_inserter(all));
  }
  watches_.clear();
  return all;
}

}  // namespace netdyno::load
