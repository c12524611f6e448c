#include "loadgen/waiting.hpp"

#include <time.h>

#include <algorithm>

#include "lib/measure/process.hpp"

namespace netdyno::load {
namespace {

constexpr std::uint32_t connections_a_poll = 256;  // one wait of a transport tells of so many at most (SocketPoller)

void sleep_until(Nanos moment) {
  const timespec wake_time{moment / one_second, moment % one_second};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_time, nullptr);
}

bool may_spin(const LoadPlan& plan) { return plan.spin != Spin::off && online_cores() > plan.threads; }

}  // namespace

Waiting::Waiting(const LoadPlan& plan, Clients& clients, Transport& transport, LoopState& loop)
    : plan_(plan),
      clients_(clients),
      transport_(transport),
      loop_(loop),
      late_reads_(plan.ends_times_with_stamps() && plan.spin != Spin::on) {}

void Waiting::choose_rules() {
  early_wake_ = choose_early_wake();
  reply_spin_ = choose_reply_spin();
}

/// A timer wakes a thread some time after the moment it was set for, so the thread wakes before and keeps polling
/// (docs/adr/wake-early.md). For half of the time at most, and not where it would take the core of the server.
EarlyWake Waiting::choose_early_wake() const {
  if (!may_spin(plan_)) return {};
  const double most_hz = plan_.steps.empty() ? plan_.rate_hz.value_or(0) : fastest_hz(plan_.steps);
  const auto gap = plan_.rate_hz ? static_cast<Nanos>(1e9 / most_hz * clients_.share.threads) : plan_.round;
  return {timer_lateness(), gap / 2, plan_.spin == Spin::automatic};
}

/// Not of servers of this project: their trials are all made without it.
ReplySpin Waiting::choose_reply_spin() const {
  const bool waits_for_replies = plan_.is_foreign() && plan_.arrivals == Arrivals::closed && plan_.round == 0;
  if (!waits_for_replies || !may_spin(plan_)) return {};
  return {true, plan_.spin == Spin::automatic};
}

void Waiting::wait(Nanos until, bool has_to_send, TransportEvents& events) {
  if (reply_spin_.decide_to_poll() && poll_for_replies(until, events)) return;
  if (!has_to_send && may_read_later(until)) return sleep_and_read(until, events);
  const bool spinning = until <= loop_.now && !has_to_send;
  if (transport_.wait(until, events) || until == never) return;
  const Nanos woken_at = now_ns();
  if (spinning) spun_ += woken_at - loop_.now;
  if (until > loop_.now && woken_at >= until) early_wake_.note_wake(woken_at - until);
}

bool Waiting::sleep_between_polls(Nanos boundary) {
  if (polls_left_ > 0) {
    --polls_left_;
    return false;
  }
  poll_at_ = std::max(poll_at_ + plan_.poll_every, loop_.now);
  sleep_until(std::min(poll_at_, boundary));
  polls_left_ = clients_.size() / connections_a_poll;
  return true;
}

void Waiting::poll(TransportEvents& events) {
  if (!transport_.wait(0, events)) polls_left_ = 0;
}

bool Waiting::poll_for_replies(Nanos until, TransportEvents& events) {
  if (transport_.wait(0, events)) return true;
  const Nanos began = now_ns();
  const Nanos end = std::min(until, began + ReplySpin::length);
  bool has_replies = false;
  Nanos last_poll = began;
  for (Nanos next = began; !has_replies && next < end; next = now_ns()) {
    last_poll = next;
    has_replies = transport_.wait(0, events);
  }
  spun_ += last_poll - began;  // what was found then is work
  reply_spin_.note_poll(has_replies);
  return has_replies;
}

/// Whether nothing that may come before `until`, or soon after a message, calls for an answer: no connection waits to
/// send.
bool Waiting::may_read_later(Nanos until) {
  if (std::min(until, late_reads_.until()) <= loop_.now || clients_.waiting == clients_.overdue) return false;
  for (; !held_.empty() && !is_held(held_.back()); held_.pop_back()) clients_[held_.back()].held = false;
  return held_.empty();
}

/// Reads what is at hand before what is due is sent, as a connection may be at its end. The thread wakes as much
/// earlier as that takes.
void Waiting::sleep_and_read(Nanos until, TransportEvents& events) {
  const Nanos moment = std::min(until, late_reads_.until());
  sleep_until(moment);
  transport_.wait(0, events);
  if (const Nanos now = now_ns(); now >= moment) early_wake_.note_wake(now - moment);
}

bool Waiting::is_held(std::uint32_t number) const {
  const Connection& connection = clients_[number];
  return !connection.gone() && (connection.blocked || connection.flight.unsent() > 0);
}

}  // namespace netdyno::load
