#pragma once

#include <algorithm>
#include <cstdint>

#include "loadgen/receiving.hpp"
#include "loadgen/sending.hpp"
#include "loadgen/thread_parts.hpp"
#include "loadgen/waiting.hpp"

namespace netdyno::load {

/// Decides how long a thread waits for replies: gives up those that are late, ends a load whose --count is answered,
/// and says when nothing is left to wait for. Owns the moments for that. Owning thread only.
class GivingUp {
 public:
  GivingUp(const ThreadParts& thread, Waiting& waiting, Sending& sending, Receiving& receiving);

  /// A slice begins; LoopState has its window.
  void begin(Nanos start);
  /// The window has another end.
  void end_window() { last_at_ = loop_.window.end + thread_.plan.last_patience(); }
  /// The last answers are waited for until then at most.
  void limit(Nanos last_at) { last_at_ = std::min(last_at_, last_at); }

  /// Gives up messages that have waited too long, if it is time to search for them.
  void give_up_late() {
    if (loop_.now >= next_at_) give_up_some();
  }
  /// After the load: gives up all that wait.
  void give_up_all();

  /// --count: whether this thread has its share of it answered, and reports that now.
  bool report_answered_count();
  /// --count: reports that this thread is done with it, unless it has.
  void report_end();

  /// Whether nothing more is waited for. What a schedule still calls for after the window, the generator could not
  /// send; that is not the requested rate.
  bool is_over() {
    return loop_.now >= last_at_ || (loop_.now >= loop_.window.end && !sending_.is_due() && is_drained());
  }
  /// When the thread is to wake for this.
  Nanos next_wakeup() const;

 private:
  bool is_chat() const { return thread_.plan.workload == Workload::chat; }
  void give_up_some();
  void give_up_late_of(std::uint32_t number);
  bool has_all_answers() const;
  bool is_drained();

  const ThreadParts thread_;
  Waiting& waiting_;
  Sending& sending_;
  Receiving& receiving_;
  LoopState& loop_;
  const Nanos patience_;       // the shortest time after which something is given up
  const bool loses_messages_;  // what is late may still come on a stream, and not where whole messages come
  Nanos next_at_ = never;      // late messages are searched for
  Nanos last_at_ = never;      // the last answers are not waited for any more
  std::uint32_t next_ = 0;     // the connection where the search goes on
  bool reported_ = false;      // all of this thread's share of --count are answered, which Control knows
};

}  // namespace netdyno::load
