// What a Worker does before the load: connect everything, and wait for the others.
#include <algorithm>

#include "loadgen/worker.hpp"

namespace netdyno::load {
namespace {

constexpr std::uint32_t connects_between_looks = 16;
constexpr Nanos first_probe_again = 50'000'000;

}  // namespace

Nanos Worker::connect_time(std::uint32_t number) const {
  if (!plan_.connect_rate_hz) return connect_start_;
  return connect_start_ + static_cast<Nanos>(slice_.global(number) * 1e9 / *plan_.connect_rate_hz);
}

void Worker::connect_all() {
  const auto size = static_cast<std::uint32_t>(connections_.size());
  connect_start_ = now_ns();
  std::uint32_t begun = 0;
  while (settled_ < size) {
    // In a burst, look now and then: a connect time is read when its event is.
    for (std::uint32_t i = 0; i < connects_between_looks && begun < size; ++i, ++begun) {
      const Nanos now = now_ns();
      if (connect_time(begun) > now) break;
      connections_[begun].state = Connection::State::connecting;
      connections_[begun].connect_began = now;
      transport_->connect(begun, *this);
    }
    expire_connects(begun);
    Nanos until = begun < size ? connect_time(begun) : never;
    if (oldest_connect_ < begun)
      until = std::min(until, connections_[oldest_connect_].connect_began + plan_.connect_timeout);
    if (settled_ < size) transport_->wait(until, *this);
  }
}

/// Gives up those that take too long. They began in order, so the first that is in time ends the search.
void Worker::expire_connects(std::uint32_t begun) {
  const Nanos now = now_ns();
  for (; oldest_connect_ < begun; ++oldest_connect_) {
    const Connection& connection = connections_[oldest_connect_];
    if (connection.state != Connection::State::connecting) continue;
    if (connection.connect_began + plan_.connect_timeout > now) return;
    transport_->close(oldest_connect_);
    on_connect_failed(oldest_connect_, ConnectFailure::timed_out, 0);
  }
}

void Worker::on_connected(std::uint32_t number) {
  Connection& connection = connections_[number];
  recorder_.figures.connect.record(now_ns() - connection.connect_began);
  connection.state = Connection::State::open;
  ++recorder_.figures.connections.established;
  ++open_;
  ++settled_;
}

void Worker::on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) {
  auto& figures = recorder_.figures;
  connections_[number].state = Connection::State::gone;
  ++settled_;
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

void Worker::await_start() {
  control_.established += open_;
  control_.reach(Control::Milestone::connected);
  bool told = false;
  while (control_.start == 0) {
    now_ = now_ns();
    if (control_.joining) {
      if (slice_.thread == 0 && now_ >= probe_at_) send_probes();
      if (!told && joined_ == open_) {
        told = true;
        control_.reach(Control::Milestone::joined);
      }
    }
    const bool probing = control_.joining && slice_.thread == 0;
    transport_->wait(probing ? probe_at_ : never, *this);
  }
}

/// A client whose connection stands may still wait in the server's backlog, and no broadcast reaches it. So before the
/// load, somebody talks until everybody has heard it. Two take turns, because a sender may not hear itself.
void Worker::send_probes() {
  std::uint32_t senders = 0;
  for (std::uint32_t number = 0; number < connections_.size() && senders < 2; ++number) {
    if (!connections_[number].open()) continue;
    sender_.probe(number, connections_[number], {probe_client, probes_++});
    ++senders;
  }
  probe_again_ = std::max(first_probe_again, probe_again_ * 2);  // patience with a slow server
  probe_at_ = now_ + probe_again_;
}

void Worker::joined(std::size_t size) {
  recorder_.figures.bytes.expected += size;
  Connection& connection = connections_[receiver_];
  if (!connection.joined) ++joined_;
  connection.joined = true;
}

}  // namespace netdyno::load
