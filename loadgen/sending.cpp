#include "loadgen/sending.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace netdyno::load {
namespace {

constexpr int sends_between_waits = 64;  // receiving must not starve; but in rounds all send at the same moment

}  // namespace

Sending::Sending(const ThreadParts& thread, Waiting& waiting)
    : plan_(thread.plan),
      control_(thread.control),
      clients_(thread.clients),
      writer_(thread.writer),
      connecting_(thread.connecting),
      recorder_(thread.recorder),
      waiting_(waiting),
      loop_(thread.loop),
      schedule_(make_schedule(plan_, clients_.share.select_speakers(plan_))),
      joined_(plan_.write_due == WriteDue::joined) {}

void Sending::begin(std::unique_ptr<Schedule> schedule, Nanos start) {
  schedule_ = std::move(schedule);
  intended_ = 0;
  exhausted_ = false;
  may_queue_ = true;
  backlog_.clear();
  backlog_at_ = 0;
  schedule_->start(start);
}

void Sending::send_due(TransportEvents& events) {
  const int most = plan_.round > 0 ? std::numeric_limits<int>::max() : sends_between_waits;
  joined_ ? send_joined(most, events) : send_each(most, events);
}

void Sending::send_each(int most, TransportEvents& events) {
  while (most > 0 && is_due()) {
    const std::uint32_t number = schedule_->next().connection;
    for (; most > 0 && is_due() && schedule_->next().connection == number; --most)
      if (!queue_next()) break;  // what it has taken by now is still to be sent
    send_queued(number, events);
  }
}

/// All that is due joins the queues of its connections before anything leaves, so that what a connection has leaves in
/// one call. Some connections at a time: receiving must not starve.
void Sending::send_joined(int most, TransportEvents& events) {
  if (backlog_at_ == backlog_.size()) queue_all_due();
  for (; most > 0 && backlog_at_ < backlog_.size(); --most) send_queued(backlog_[backlog_at_++], events);
}

/// Once a poll, where there are polls: what becomes due while the others are sent waits for the next one.
void Sending::queue_all_due() {
  backlog_.clear();
  backlog_at_ = 0;
  if (!may_queue_) return;
  may_queue_ = plan_.poll_every == 0;
  while (is_due()) {
    const std::uint32_t number = schedule_->next().connection;
    const bool had_some = clients_[number].flight.unsent() > 0;  // it is queued, or something else will send them
    if (!queue_next()) return;
    if (!had_some && clients_[number].flight.unsent() > 0) backlog_.push_back(number);
  }
}

/// The next message of the schedule joins the queue of its connection. False where --count is exhausted.
bool Sending::queue_next() {
  if (!claim_from_count(schedule_->next().intended)) return false;
  const Arrival arrival = schedule_->take();
  Connection& connection = clients_[arrival.connection];
  recorder_.note_scheduled(arrival.intended);
  if (connection.gone()) {
    ++recorder_.figures.errors.timeout;  // it will never have an answer
    recorder_.note_error(loop_.now);
    return true;
  }
  connection.flight.intend(arrival.intended);
  ++clients_.waiting;
  ++intended_;
  return true;
}

/// Whether the next message may be sent: --count is of those that are meant for the window.
bool Sending::claim_from_count(Nanos intended) {
  if (plan_.count == 0 || intended < loop_.window.start) return true;
  exhausted_ = !control_.claim_message();
  return !exhausted_;
}

void Sending::send_queued(std::uint32_t number, TransportEvents& events) {
  Connection& connection = clients_[number];
  if (connection.open()) {
    writer_.push(number, connection);
  } else if (connection.state == Connection::State::left && connection.flight.unsent() > 0) {
    connecting_.reconnect(number, events);
  }
  waiting_.note_sent();
  waiting_.note_held(number);
}

Nanos Sending::next_wakeup() const {
  Nanos next = never;
  const Nanos intended = schedule_->next().intended;
  if (intended < loop_.window.end && !exhausted_) next = intended - waiting_.early();
  return backlog_at_ < backlog_.size() ? std::min(next, loop_.now) : next;
}

}  // namespace netdyno::load
