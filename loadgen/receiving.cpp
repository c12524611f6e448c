#include "loadgen/receiving.hpp"

namespace netdyno::load {

Receiving::Receiving(const ThreadParts& thread, Codec& codec, Waiting& waiting, Sending& sending)
    : thread_(thread),
      waiting_(waiting),
      sending_(sending),
      loop_(thread.loop),
      recorder_(thread.recorder),
      matching_(thread.matching),
      by_kernel_(thread.plan.ends_times_with_stamps()),
      streams_(codec),
      peer_(make_peer(thread, *this)) {
  if (carries_messages(thread.plan.url)) messages_.emplace(codec);
}

/// How long what was just stamped with `now` had been there. The stamp comes first: what this takes is in no response
/// time.
Nanos Receiving::lag_since(KernelStamp arrived) {
  if (!arrived) return never;
  const auto arrived_at = wall_clock_.monotonic(*arrived, WallClock::read());
  return arrived_at && *arrived_at <= loop_.now ? loop_.now - *arrived_at : never;
}

/// The times of what is decoded next end with its stamp where they are to and there is one, else with `now`, and the
/// lag is in them.
void Receiving::set_times(std::uint32_t number, KernelStamp arrived) {
  const Nanos lag = lag_since(arrived);
  const bool stamped = by_kernel_ && lag != never;
  waiting_.note_read(stamped);
  matching_.begin_reading(number, stamped ? loop_.now - lag : loop_.now, stamped);
  matching_.set_lag(stamped ? never : lag);
}

void Receiving::on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) {
  if (messages_) return on_messages(number, {&bytes, 1}, {&arrived, 1});
  loop_.now = loop_.clock.now();
  set_times(number, arrived);
  recorder_.figures.bytes.received += bytes.size();
  if (number == 0) FirstExchange::note(recorder_.figures.first_exchange.received, bytes);
  auto& decoder = thread_.clients[number].decoder;
  const bool good = streams_.receive(decoder, bytes, matching_);
  waiting_.note_read(!decoder);
  peer_->on_received(number, good, loop_.now);
  waiting_.note_held(number);
  sending_.send_between_events(*this);
}

/// Answers that came together are timed together, and what they call for is sent when all are read: in one batch.
void Receiving::on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                            std::span<const KernelStamp> arrived) {
  loop_.now = loop_.clock.now();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    set_times(number, arrived.empty() ? KernelStamp{} : arrived[i]);
    recorder_.figures.bytes.received += messages[i].size();
    if (number == 0) FirstExchange::note(recorder_.figures.first_exchange.received, messages[i]);
    messages_->receive(messages[i], matching_);
  }
  sending_.send_between_events(*this);
}

void Receiving::on_request_failed(std::uint32_t number, const Stamp& stamp, std::string_view why) {
  loop_.now = loop_.clock.now();
  matching_.begin_reading(number, loop_.now);
  matching_.on_failed(stamp, why);
  peer_->on_received(number, true, loop_.now);
  waiting_.note_held(number);
  sending_.send_between_events(*this);
}

void Receiving::on_connected(std::uint32_t number) { thread_.connecting.note_connected(number); }

void Receiving::on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) {
  fail_connect(number, failure, error, std::string{thread_.transport.why()});
}

void Receiving::fail_connect(std::uint32_t number, ConnectFailure failure, int error, const std::string& why) {
  const bool returning = thread_.clients[number].state == Connection::State::returning;
  thread_.connecting.note_failed(number, failure, error);
  loop_.now = loop_.clock.now();
  if (!why.empty()) recorder_.figures.faults.note(why, Population::connects, loop_.now);
  if (returning) peer_->on_reconnect_failed(number, failure, !why.empty(), loop_.now);
}

void Receiving::on_writable(std::uint32_t number) { thread_.writer.resume(number, thread_.clients[number]); }

void Receiving::on_closed(std::uint32_t number, CloseReason reason) {
  loop_.now = loop_.clock.now();
  waiting_.note_read(false);  // the kernel does not say when, and it may be the end of a reply
  peer_->on_closed(number, reason, std::string{thread_.transport.why()}, loop_.now);
  waiting_.note_held(number);
  sending_.send_between_events(*this);
}

}  // namespace netdyno::load
