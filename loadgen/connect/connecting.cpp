#include "loadgen/connect/connecting.hpp"

#include <algorithm>

#include "loadgen/match/matching.hpp"

namespace netdyno::load {
namespace {

constexpr std::uint32_t connects_between_polls = 16;
constexpr Nanos first_probe_again = 50'000'000;
constexpr Nanos until_another_try = 100'000'000;
constexpr Nanos between_tries = 1'000'000;  // of all connections, where many are away

}  // namespace

Nanos Connecting::find_due(std::uint32_t number) const {
  if (!plan_.connect_rate_hz) return start_;
  return start_ + static_cast<Nanos>(clients_.share.global(number) * 1e9 / *plan_.connect_rate_hz);
}

void Connecting::connect_all(TransportEvents& events) {
  const std::uint32_t size = clients_.size();
  if (plan_.connects_when_due) {  // an idle connection would keep a server busy that serves one after the other
    for (std::uint32_t number = 0; number < size; ++number) clients_[number].state = Connection::State::left;
    clients_.open = size;
    return;
  }
  start_ = now_ns();
  std::uint32_t begun = 0;
  while (settled_ < size) {
    // In a burst, poll now and then: a connect time is read when its event is.
    for (std::uint32_t i = 0; i < connects_between_polls && begun < size; ++i, ++begun) {
      const Nanos now = now_ns();
      if (find_due(begun) > now) break;
      clients_[begun].state = Connection::State::connecting;
      clients_[begun].connect_began = now;
      transport_.connect(begun, events);
    }
    expire(begun);
    Nanos until = begun < size ? find_due(begun) : never;
    if (oldest_ < begun) until = std::min(until, clients_[oldest_].connect_began + plan_.connect_timeout);
    if (settled_ < size) transport_.wait(until, events);
    answer_early_speech();
  }
}

/// Brings what a client has under way to as many messages as in the load: so others connect to a room that talks. Where
/// one of them fills the socket, the next is sent when that has been heard.
void Connecting::speak_early(std::uint32_t number) {
  Connection& connection = clients_[number];
  EarlySpeech& early = clients_.early[number];
  const std::uint32_t client = Matching::first_early_client + clients_.share.global(number);
  while (early.sent - early.received < plan_.depth && writer_.probe(number, connection, {client, early.sent}))
    ++early.sent;
}

/// Until every connect of every thread has ended; what is heard later is answered by nothing.
void Connecting::answer_early_speech() {
  if (speaks_early()) {
    for (const std::uint32_t number : clients_.just_received)
      if (clients_[number].open()) speak_early(number);
  }
  clients_.just_received.clear();
}

/// Gives up those that take too long. They began in order, so the first that is in time ends the search.
void Connecting::expire(std::uint32_t begun) {
  const Nanos now = now_ns();
  for (; oldest_ < begun; ++oldest_) {
    const Connection& connection = clients_[oldest_];
    if (connection.state != Connection::State::connecting) continue;
    if (connection.connect_began + plan_.connect_timeout > now) return;
    transport_.close(oldest_);
    note_failed(oldest_, ConnectFailure::timed_out, 0);
  }
}

void Connecting::leave(std::uint32_t number, TransportEvents& events) {
  Connection& connection = clients_[number];
  transport_.close(number);
  connection.state = Connection::State::left;
  connection.decoder.reset();
  connection.rest.clear();
  if (connection.flight.unsent() > 0) reconnect(number, events);
}

void Connecting::reconnect(std::uint32_t number, TransportEvents& events) {
  clients_[number].state = Connection::State::returning;
  clients_[number].connect_began = now_ns();
  transport_.connect(number, events);
}

void Connecting::try_again(Nanos now, TransportEvents& events) {
  for (std::uint32_t i = 0; i < connects_between_polls && !away_.empty() && away_.front().again_at <= now; ++i) {
    const std::uint32_t number = away_.front().number;
    away_.pop_front();
    reconnect(number, events);
  }
  next_try_ = now + between_tries;
}

void Connecting::note_connected(std::uint32_t number) {
  Connection& connection = clients_[number];
  recorder_.note_connected(connection.connect_began, now_ns());
  if (connection.state == Connection::State::connecting) {
    ++clients_.open;
    ++settled_;
  }
  connection.state = Connection::State::open;
  if (plan_.requests_per_connection > 0)
    connection.end = connection.last = connection.flight.next_to_send() + plan_.requests_per_connection;
  if (plan_.flight_is_limited) connection.limit_flight(plan_.depth);
  connection.replied = connection.closing = false;
  writer_.resume(number, connection);
  if (speaks_early()) speak_early(number);
}

void Connecting::note_failed(std::uint32_t number, ConnectFailure failure, int error) {
  auto& figures = recorder_.figures;
  Connection& connection = clients_[number];
  const bool first = connection.state == Connection::State::connecting;
  settled_ += first;
  if (plan_.is_foreign()) {
    clients_.open += first;
    connection.state = Connection::State::away;
    away_.push_back({number, now_ns() + until_another_try});
  } else {
    connection.state = Connection::State::gone;
  }
  switch (failure) {
    case ConnectFailure::refused:
      ++figures.connections.refused;
      break;
    case ConnectFailure::timed_out:
      ++figures.connections.timed_out;
      break;
    case ConnectFailure::reset:
      ++figures.connections.reset;
      break;
    case ConnectFailure::other:
      ++figures.connections.other;
      figures.other_connect_error = error;
      break;
  }
}

void Connecting::await_start(TransportEvents& events) {
  control_.add_established(clients_.open - static_cast<std::uint32_t>(away_.size()));
  control_.reach(Control::Milestone::connected);
  const bool first_thread = clients_.share.thread == plan_.share.index * plan_.threads;
  bool reached = false;
  while (!control_.has_start()) {
    const Nanos now = now_ns();
    if (control_.is_joining()) {
      if (first_thread && now >= probe_at_) send_probes(now);
      if (!reached && clients_.joined == clients_.open) {
        reached = true;
        control_.reach(Control::Milestone::joined);
      }
    }
    transport_.wait(control_.is_joining() && first_thread ? probe_at_ : never, events);
    answer_early_speech();
  }
}

/// A connected client may still wait in the server's backlog, where no broadcast reaches it. So before the load, probes
/// are sent until every client has received one. Two clients take turns, because a sender may not hear itself.
void Connecting::send_probes(Nanos now) {
  std::uint32_t senders = 0;
  for (std::uint32_t number = 0; number < clients_.size() && senders < 2; ++number) {
    if (!clients_[number].open()) continue;
    writer_.probe(number, clients_[number], {Matching::probe_client, probes_++});
    ++senders;
  }
  probe_again_ = std::max(first_probe_again, probe_again_ * 2);  // patience with a slow server
  probe_at_ = now + probe_again_;
}

}  // namespace netdyno::load
