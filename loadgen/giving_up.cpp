#include "loadgen/giving_up.hpp"

#include <algorithm>

namespace netdyno::load {
namespace {

constexpr std::uint32_t connections_at_once = 64;
constexpr Nanos shortest_pause = 1'000'000;
constexpr Nanos drain_check = 5'000'000;

Nanos choose_patience(const LoadPlan& plan) {
  return plan.may_reconnect() ? std::min(plan.timeout, plan.connect_timeout) : plan.timeout;
}

}  // namespace

GivingUp::GivingUp(const ThreadParts& thread, Waiting& waiting, Sending& sending, Receiving& receiving)
    : thread_(thread),
      waiting_(waiting),
      sending_(sending),
      receiving_(receiving),
      loop_(thread.loop),
      patience_(choose_patience(thread.plan)),
      loses_messages_(carries_messages(thread.plan.url)) {}

void GivingUp::begin(Nanos start) {
  end_window();
  next_at_ = start + patience_;
}

/// A few connections at a time, so that ten thousand do not delay what is due meanwhile.
void GivingUp::give_up_some() {
  const std::uint32_t size = thread_.clients.size();
  const std::uint32_t count = std::min(connections_at_once, size);
  for (std::uint32_t i = 0; i < count; ++i, next_ = (next_ + 1) % size) give_up_late_of(next_);
  next_at_ = loop_.now + std::max<Nanos>(shortest_pause, patience_ / 10 * count / size);
}

/// In a closed loop the next message goes out instead.
void GivingUp::give_up_late_of(std::uint32_t number) {
  const Connection& connection = thread_.clients[number];
  if (thread_.connecting.has_waited_too_long(connection, loop_.now)) {
    thread_.transport.close(number);
    receiving_.fail_connect(number, ConnectFailure::timed_out, 0, "");  // no event: nothing has been said of it
  }
  if (connection.gone()) return;
  const auto [late, with_unsent] = receiving_.peer().give_up_late(number, loop_.now);
  if (with_unsent) sending_.exhaust();
  waiting_.note_held(number);
  if (late == 0) return;
  thread_.recorder.figures.errors.timeout += late;
  thread_.recorder.note_error(loop_.now, late);
  for (std::uint64_t i = 0; i < late && loop_.now < loop_.window.end; ++i)
    sending_.schedule().note_answered(number, loop_.now);
}

void GivingUp::give_up_all() {
  if (!thread_.matching.draining()) is_drained();
  for (std::uint32_t number = 0; number < thread_.clients.size(); ++number)
    if (!thread_.clients[number].gone())
      thread_.recorder.figures.errors.timeout += receiving_.peer().give_up_all(number, loop_.now);
}

bool GivingUp::report_answered_count() {
  if (!sending_.is_exhausted() || reported_) return false;
  // What was given up is waited for after the window, as ever.
  if (thread_.clients.waiting != thread_.clients.overdue) return false;
  report_end();
  return true;
}

/// The last thread to report ends the window for all, after the last answer of each.
void GivingUp::report_end() {
  if (thread_.plan.count == 0 || reported_) return;
  reported_ = true;
  if (!thread_.control.report_answered()) return;
  const Nanos end = std::max(now_ns() + 1, loop_.window.start);
  if (end < loop_.window.end) thread_.control.end_window(end);
}

/// Waits for what a stream still holds, which comes before the rest. A message that is overdue has been lost.
bool GivingUp::has_all_answers() const {
  return thread_.clients.waiting == (loses_messages_ ? thread_.clients.overdue : 0);
}

/// Everything that was meant to be sent has its answers. Only after the end of the window.
bool GivingUp::is_drained() {
  if (!is_chat()) return has_all_answers();
  if (!thread_.matching.draining()) thread_.matching.begin_drain(sending_.intended());
  return thread_.control.is_all_delivered();
}

Nanos GivingUp::next_wakeup() const {
  const Nanos next = std::min(next_at_, last_at_);
  // What other threads received ends the drain of a chat too.
  const bool waits_for_threads = (thread_.matching.draining() && is_chat()) || reported_;
  return waits_for_threads ? std::min(next, loop_.now + drain_check) : next;
}

}  // namespace netdyno::load
