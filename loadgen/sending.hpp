#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "loadgen/plan/schedule.hpp"
#include "loadgen/thread_parts.hpp"
#include "loadgen/waiting.hpp"

namespace netdyno::load {

/// Sends what is due: takes messages off the schedule, as long as --count and the slice have any, queues them on their
/// connections, and lets them leave: each by itself, or (--write-due joined) all that is due on a connection in one
/// call. Owns the schedule and the backlog, the connections that have such messages. Owning thread only.
class Sending {
 public:
  Sending(const ThreadParts& thread, Waiting& waiting);

  /// A slice begins, with a schedule of its own.
  void begin(std::unique_ptr<Schedule> schedule, Nanos start);
  Schedule& schedule() { return *schedule_; }

  /// In each turn of the loop. `events`: what a client that reconnects to send brings.
  void send_due(TransportEvents& events);
  /// Sends what answers call for, while others may have come. Joined, it waits for the turn of the loop.
  void send_between_events(TransportEvents& events) {
    if (!joined_) send_each(sends_between_events, events);
  }

  /// Whether the schedule has a message that may be sent now.
  bool is_due() const {
    const Nanos next = schedule_->next().intended;
    return next <= loop_.now && next < loop_.window.end && !exhausted_;
  }
  /// Whether something can be sent without another poll.
  bool has_to_send() const {
    if (backlog_at_ < backlog_.size()) return true;
    return is_due() && (!joined_ || may_queue_);
  }
  /// When the thread is to wake for the next message.
  Nanos next_wakeup() const;
  /// --look-every: what is due by now may join the queues.
  void allow_queueing() { may_queue_ = true; }

  /// No message is left: of --count, or between slices.
  bool is_exhausted() const { return exhausted_; }
  void exhaust() { exhausted_ = true; }
  /// Messages that joined a queue.
  std::uint64_t intended() const { return intended_; }

 private:
  static constexpr int sends_between_events = 16;  // sending must not starve receiving

  void send_each(int most, TransportEvents& events);
  void send_joined(int most, TransportEvents& events);
  void queue_all_due();
  bool queue_next();
  bool claim_from_count(Nanos intended);
  void send_queued(std::uint32_t number, TransportEvents& events);

  const LoadPlan& plan_;
  Control& control_;
  Clients& clients_;
  MessageWriter& writer_;
  Connecting& connecting_;
  Recorder& recorder_;
  Waiting& waiting_;
  LoopState& loop_;
  std::unique_ptr<Schedule> schedule_;  // of a slice
  std::uint64_t intended_ = 0;
  bool exhausted_ = false;
  const bool joined_;                   // what is due on a connection leaves in one call
  bool may_queue_ = true;               // and nothing has joined the queues since the last poll
  std::vector<std::uint32_t> backlog_;  // connections that were given messages, to be sent from `backlog_at_` on
  std::size_t backlog_at_ = 0;
};

}  // namespace netdyno::load
