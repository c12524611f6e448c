#include "loadgen/match/matching.hpp"

#include <algorithm>

namespace netdyno::load {
namespace {

std::string_view words_for(Matching::End end) {
  switch (end) {
    case Matching::End::closed:
      return "the connection was closed with a request in flight, which is not resent";
    case Matching::End::reset:
      return "the connection was reset with a request in flight, which is not resent";
    case Matching::End::announced:
    case Matching::End::given_up:
      break;
  }
  return "its connection was given up with this request in flight, which is not resent";
}

}  // namespace

Matching::Matching(const LoadPlan& plan, Clients& clients, Control& control, Codec& codec, Recorder& recorder)
    : plan_(plan),
      clients_(clients),
      control_(control),
      codec_(codec),
      recorder_(recorder),
      deliveries_(clients.size(), is_chat() ? plan.connections : 1),
      messages_(carries_messages(plan.url)),
      sizes_known_(codec.reply_size({}).has_value() && (messages_ || !plan.is_part_of_a_room())) {}

void Matching::begin(const Window& window, Schedule& schedule) {
  window_ = window;
  schedule_ = &schedule;
  draining_ = false;
  for (Connection& connection : clients_.connections) connection.response_ns = connection.answered = 0;
  if (is_chat()) choose_timers();
}

void Matching::note_joined(std::size_t size) {
  recorder_.figures.bytes.expected += size;
  Connection& connection = clients_[receiver_];
  if (!connection.joined) ++clients_.joined;
  connection.joined = true;
}

/// The first copy that a connection of the sender's thread receives lets the sender send again. Messages that no
/// connection received count as received with the next one that is.
void Matching::receive_early(const Stamp& stamp, std::size_t size) {
  const std::uint32_t sender = stamp.client - first_early_client;
  if (clients_.early.empty() || sender >= clients_.share.connections) return on_corrupt();
  if (clients_.share.owns(sender)) {
    const std::uint32_t number = clients_.share.local(sender);
    EarlySpeech& early = clients_.early[number];
    if (stamp.sequence >= early.sent) return on_corrupt();
    if (stamp.sequence >= early.received) {
      early.received = stamp.sequence + 1;
      clients_.just_received.push_back(number);
    }
  }
  note_joined(size);
}

void Matching::on_corrupt() {
  ++recorder_.figures.messages.corrupt;
  recorder_.note_wrong(now_);
}

void Matching::on_reply(const Stamp& stamp, std::size_t size) {
  auto& figures = recorder_.figures;
  if (is_chat() && stamp.client == probe_client) return note_joined(size);
  if (is_chat() && stamp.client >= first_early_client) return receive_early(stamp, size);
  if (!is_plausible(stamp)) return on_corrupt();
  ++figures.messages.received;
  // Over messages, what is lost brings no bytes: each reply is held against what it should have.
  if (messages_) figures.bytes.expected += codec_.reply_size(stamp).value_or(size);
  using Verdict = Deliveries::Verdict;
  const Verdict verdict = is_unwanted_copy(stamp)
                              ? Verdict::again
                              : deliveries_.note(receiver_, is_chat() ? stamp.client : 0, stamp.sequence);
  if (verdict == Verdict::again) {
    ++figures.messages.duplicated;
    return recorder_.note_error(now_);
  }
  if (verdict == Verdict::late && !plan_.may_overtake()) {
    ++figures.messages.reordered;
    recorder_.note_error(now_);
  }
  if (!sizes_known_) figures.bytes.expected += size;
  if (draining_) control_.note_delivery();
  if (does_complete(stamp)) complete(is_chat() ? clients_.share.local(stamp.client) : receiver_, stamp.sequence);
}

void Matching::on_plain(const PlainReply& reply) {
  auto& figures = recorder_.figures;
  Connection& connection = clients_[receiver_];
  figures.bytes.expected += reply.size;
  if (connection.flight.unanswered() == 0) {
    ++figures.messages.corrupt;
    figures.faults.note("a reply that matches no request", Population::replies, now_);
    return recorder_.note_error(now_);
  }
  if (reply.status != 0) ++figures.statuses[reply.status];
  connection.replied = true;
  connection.closing = reply.last;
  const Stamp request{clients_.share.global(receiver_), connection.flight.oldest()};
  std::string wrong = codec_.fault_of(reply, request);
  if (connection.is_oldest_unfinished())
    wrong = (wrong.empty() ? "a reply" : wrong + ",") + " before the request was sent whole";
  if (wrong.empty()) {
    ++figures.messages.received;
    complete(receiver_, request.sequence);
  } else {
    ++figures.messages.unexpected;
    fail_oldest(receiver_, wrong);
  }
  connection.end = std::min(connection.last, connection.flight.oldest() + plan_.depth);
}

/// A chunk is due by a schedule that begins with its request. One that is early shows a server that sends what it has,
/// and not when it is to.
void Matching::on_chunk(const Stamp& stamp, std::uint64_t number) {
  Flight& flight = clients_[receiver_].flight;
  if (!is_plausible(stamp) || flight.unanswered() == 0 || stamp.sequence != flight.oldest()) return;
  const Nanos due = flight.oldest_sent() + static_cast<Nanos>(number) * plan_.every;
  if (now_ + earliest_chunk < due) ++recorder_.figures.early_chunks;
  recorder_.note_chunk(due, now_);
}

void Matching::on_failed(const Stamp& stamp, std::string_view why) {
  ++recorder_.figures.messages.unexpected;
  recorder_.figures.bytes.expected -= codec_.reply_size(stamp).value_or(0);
  fail(receiver_, stamp.sequence, why);
}

/// The message that was sent has no answer that counts.
void Matching::fail(std::uint32_t number, std::uint64_t sequence, std::string_view why) {
  const auto failed = clients_[number].flight.answer(sequence);
  --clients_.waiting;
  if (failed->expired) {  // it has been counted and named then: one message, one fault
    --clients_.overdue;
    return;
  }
  recorder_.figures.faults.note(why, Population::messages, now_);
  recorder_.note_wrong(now_);
  recorder_.note_given_up(failed->times.intended, failed->times.sent, now_);
  if (now_ < window_.end) schedule_->note_answered(number, now_);
}

std::uint64_t Matching::take_back(std::uint32_t number, std::string_view why, End end, Nanos now) {
  Connection& connection = clients_[number];
  now_ = now;
  std::uint64_t given_up = 0;
  if (!why.empty() && connection.flight.unanswered() > 0) {
    fail_oldest(number, why);
    ++given_up;
  } else if (!why.empty()) {
    recorder_.figures.faults.note(why, Population::connections, now);
  }
  if (end != End::announced && !plan_.may_be_sent_again()) return given_up + give_up_sent(number, end);
  const std::uint64_t out = connection.flight.take_back([&](const Flight::Times& times) {
    recorder_.note_taken_back(times.intended, times.sent, now);
    --recorder_.figures.messages.expected;
  });
  clients_.waiting -= out;
  clients_.overdue -= out;
  return given_up;
}

/// The outcome of these requests is unknown, and to send them again might carry them out twice.
std::uint64_t Matching::give_up_sent(std::uint32_t number, End end) {
  std::uint64_t given_up = 0;
  const std::uint64_t overdue_before = clients_[number].flight.overdue();
  const std::uint64_t out = clients_[number].flight.forget_sent([&](const Flight::Times& times) {
    recorder_.note_given_up(times.intended, times.sent, now_);
    recorder_.note_wrong(now_);
    ++given_up;
  });
  clients_.waiting -= out;
  clients_.overdue -= overdue_before;
  if (given_up > 0) recorder_.figures.faults.note(words_for(end), Population::messages, now_, given_up);
  for (std::uint64_t i = 0; i < given_up && now_ < window_.end; ++i) schedule_->note_answered(number, now_);
  return given_up;
}

/// Whether the message was sent, by a client that this receiver hears.
bool Matching::is_plausible(const Stamp& stamp) const {
  if (!is_chat())
    return stamp.client == clients_.share.global(receiver_) &&
           stamp.sequence < clients_[receiver_].flight.next_to_send();
  if (stamp.client >= clients_.share.connections) return false;
  // What other threads have sent is not known here; their messages pass on their checksum.
  return !clients_.share.owns(stamp.client) ||
         stamp.sequence < clients_[clients_.share.local(stamp.client)].flight.next_to_send();
}

bool Matching::is_unwanted_copy(const Stamp& stamp) const {
  return is_chat() && plan_.audience == Audience::others && stamp.client == clients_.share.global(receiver_);
}

bool Matching::does_complete(const Stamp& stamp) const {
  if (!is_chat()) return true;
  if (plan_.audience == Audience::all) return stamp.client == clients_.share.global(receiver_);
  return clients_.share.owns(stamp.client) && timers_[clients_.share.local(stamp.client)] == receiver_;
}

void Matching::complete(std::uint32_t sender, std::uint64_t sequence) {
  if (!clients_[sender].open()) return;  // chat: it has left, and what it said is given up
  const auto answered = clients_[sender].flight.answer(sequence);
  if (!answered) return;  // chat: the timer before this one had it already
  const Flight::Times& times = answered->times;
  // A server that answers what it has not been asked yet may be read after the question has left.
  const Nanos answered_at = std::max(now_, times.sent);
  --clients_.waiting;
  if (window_.holds(times.intended)) {
    clients_[sender].response_ns += static_cast<std::uint64_t>(answered_at - times.intended);
    ++clients_[sender].answered;
  }
  recorder_.note_answered(times.intended, times.sent, answered_at, answered->expired);
  if (by_kernel_) recorder_.note_kernel_stamp(times.intended);
  if (receive_lag_ != never) recorder_.note_lag(times.intended, receive_lag_);
  if (answered->expired) --clients_.overdue;
  const bool late = answered_at - times.intended > plan_.timeout;
  if (late) recorder_.note_late(answered_at);
  if (answered->expired) return;
  if (late) {
    ++recorder_.figures.errors.timeout;
    if (plan_.is_foreign()) recorder_.figures.faults.note(no_answer_in_time, Population::messages, now_);
    recorder_.note_error(now_);
  }
  if (now_ < window_.end) schedule_->note_answered(sender, now_);
}

std::uint64_t Matching::give_up(Connection& connection, Nanos deadline, Nanos now) {
  const std::uint64_t before = connection.flight.overdue();
  connection.flight.expire(
      deadline, [&](const Flight::Times& times) { recorder_.note_given_up(times.intended, times.sent, now); });
  const std::uint64_t count = connection.flight.overdue() - before;
  clients_.overdue += count;
  return count;
}

std::uint64_t Matching::give_up_unsent(Connection& connection, Nanos deadline) {
  const std::uint64_t count = connection.flight.forget_unsent(deadline);
  clients_.waiting -= count;
  recorder_.figures.messages.expected += count;
  return count;
}

void Matching::let_go(std::uint32_t number, Nanos now) {
  Connection& connection = clients_[number];
  connection.state = Connection::State::gone;
  --clients_.open;
  if (connection.joined) --clients_.joined;
  give_up(connection, never, now);
  clients_.waiting -= connection.flight.waiting();
  clients_.overdue -= connection.flight.overdue();
  recorder_.figures.errors.timeout += connection.flight.unsent();
  recorder_.note_error(now, 1 + connection.flight.unsent());
  if (is_chat()) choose_timers();
}

void Matching::begin_drain(std::uint64_t intended) {
  const auto& messages = recorder_.figures.messages;
  const std::uint64_t distinct = messages.received - messages.duplicated;
  const auto pending = static_cast<std::int64_t>(recipients() * intended) - static_cast<std::int64_t>(distinct);
  control_.begin_drain(pending, intended);
  draining_ = true;
}

std::uint64_t Matching::recipients() const {
  if (plan_.is_part_of_a_room()) return 0;  // Run counts them: those of other programs are not known here
  const std::uint64_t apart = plan_.slow_readers + (plan_.audience == Audience::others ? 1U : 0U);
  const std::uint64_t established = control_.read_established();
  return established - std::min(apart, established);
}

/// A connection that sends in a closed loop always has a message under way, so if it began none in the window, it has
/// waited all the time, unless others have taken all that there were.
void Matching::end() const {
  const std::uint32_t speakers = clients_.share.select_speakers(plan_).size();
  for (std::uint32_t number = 0; number < speakers; ++number) {
    const Connection& connection = clients_[number];
    if (connection.answered > 0)
      recorder_.figures.connection.record(static_cast<Nanos>(connection.response_ns / connection.answered));
    else if (plan_.arrivals == Arrivals::closed && plan_.count == 0 && connection.open())
      recorder_.figures.connection.record(window_.end - window_.start);
  }
}

void Matching::choose_timers() {
  const std::uint32_t size = clients_.size();
  timers_.assign(size, size);
  // From the last to the first, twice around, carrying along which open one comes next.
  std::uint32_t next_open = size;
  for (std::uint32_t i = 2 * size; i > 0; --i) {
    const std::uint32_t number = (i - 1) % size;
    timers_[number] = next_open;
    if (clients_[number].open()) next_open = number;
  }
}

}  // namespace netdyno::load
