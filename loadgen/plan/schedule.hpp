#pragma once

#include <cstdint>
#include <memory>

#include "lib/measure/clock.hpp"
#include "loadgen/plan/plan.hpp"

namespace netdyno::load {

/// The connections of one generator thread: those with `number % threads == thread`, which it calls 0, 1, 2, ...
struct ThreadShare {
  std::uint32_t thread = 0;
  std::uint32_t threads = 1;
  std::uint32_t connections = 1;  // of all threads

  std::uint32_t size() const { return (connections - thread + threads - 1) / threads; }
  std::uint32_t global(std::uint32_t local) const { return local * threads + thread; }
  bool owns(std::uint32_t number) const { return number % threads == thread && number < connections; }
  std::uint32_t local(std::uint32_t number) const { return number / threads; }
  /// The connections of this thread that send: they are the first of all, so of the share as well.
  ThreadShare select_speakers(const LoadPlan& plan) const { return {thread, threads, plan.speakers()}; }
};

/// The threads of all programs that share a load are dealt its connections as those of one program are.
inline ThreadShare make_thread_share(const LoadPlan& plan, std::uint32_t thread) {
  return {plan.share.index * plan.threads + thread, plan.share.count * plan.threads, plan.connections};
}

/// One message to come: when it is meant to be sent, and on which connection of the share.
struct Arrival {
  Nanos intended;
  std::uint32_t connection;
};

/// When messages are meant to be sent. A schedule knows nothing of what the server or the generator manages: an arrival
/// that is late stays due until it is taken. Owning thread only.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// The schedule's time 0. Called once, first.
  virtual void start(Nanos start_time) = 0;
  /// The next message; its time is `never` while only an answer can bring one.
  const Arrival& next() const { return next_; }
  /// Takes the next message. Only when there is one.
  Arrival take() {
    const Arrival taken = next_;
    advance();
    return taken;
  }
  /// A message of `connection` was answered, or is not waited for any more. An open loop does not care.
  virtual void note_answered(std::uint32_t /*connection*/, Nanos /*now*/) {}

 protected:
  /// Puts the message after the one just taken into `next_`.
  virtual void advance() = 0;

  Arrival next_{never, 0};
};

/// `elapsed`: how much of an even schedule is over when it starts, in nanoseconds. It goes on from there.
std::unique_ptr<Schedule> make_schedule(const LoadPlan& plan, const ThreadShare& share, Nanos elapsed = 0);

}  // namespace netdyno::load
