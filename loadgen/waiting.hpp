#pragma once

#include <cstdint>
#include <vector>

#include "loadgen/match/clients.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/thread_parts.hpp"
#include "loadgen/transport/transport.hpp"
#include "loadgen/wait_rules.hpp"

namespace netdyno::load {

/// How a thread waits for the next event: asleep in its transport, awake before a message is due (EarlyWake), polling
/// for replies (ReplySpin) or for all sockets every so often (--look-every), or asleep until replies may be read
/// (LateReads). Owns what it has learned for that, and the CPU time that it spent awake. Owning thread only.
class Waiting {
 public:
  Waiting(const LoadPlan& plan, Clients& clients, Transport& transport, LoopState& loop);

  /// Measures how late the timers of the calling thread are. Once, before the load.
  void choose_rules();

  /// Waits until `until` at most, and hands what comes to `events`. `has_to_send`: something can be sent now.
  void wait(Nanos until, bool has_to_send, TransportEvents& events);

  /// --look-every: sleeps until the sockets are polled again, once all of them have been. False without a sleep.
  bool sleep_between_polls(Nanos boundary);
  /// --look-every: reads what is at hand.
  void poll(TransportEvents& events);

  /// So long before a message is due, the thread wakes.
  Nanos early() const { return early_wake_.early(); }
  /// Time awake that brought nothing.
  Nanos spun() const { return spun_; }

  void note_sent() { late_reads_.note_sent(loop_.clock.now()); }
  /// Whether what was read could as well have been read later.
  void note_read(bool could_wait) { late_reads_.note(could_wait); }
  /// To be called after each event of a connection: what it has to send may wait for a place, for room, or for a
  /// connection.
  void note_held(std::uint32_t number) {
    if (!late_reads_.allowed() || clients_[number].held || !is_held(number)) return;
    clients_[number].held = true;
    held_.push_back(number);
  }

 private:
  EarlyWake choose_early_wake() const;
  ReplySpin choose_reply_spin() const;
  bool poll_for_replies(Nanos until, TransportEvents& events);
  bool may_read_later(Nanos until);
  void sleep_and_read(Nanos until, TransportEvents& events);
  bool is_held(std::uint32_t number) const;

  const LoadPlan& plan_;
  Clients& clients_;
  Transport& transport_;
  LoopState& loop_;
  EarlyWake early_wake_;  // for the next message
  ReplySpin reply_spin_;
  LateReads late_reads_;
  std::vector<std::uint32_t> held_;  // connections that may wait for room, an answer or the server to send what is due
  Nanos spun_ = 0;
  Nanos poll_at_ = 0;  // the next poll, where there are polls
  std::uint32_t polls_left_ = 0;
};

}  // namespace netdyno::load
