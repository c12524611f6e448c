#include "loadgen/transport/greeting.hpp"

#include <random>

#include "loadgen/plan/split_mix.hpp"

namespace netdyno::load {

std::uint64_t fresh_secret() {
  std::random_device machine;
  return static_cast<std::uint64_t>(machine()) << 32 | machine();
}

std::uint64_t Greetings::token(std::uint32_t connection) const { return SplitMix64{secret_, connection}(); }

ControlBytes Greetings::begin(std::uint32_t connection, Nanos now) {
  Peer& peer = peers_[connection];
  peer.due = now + peer.patience;
  if (peer.state != State::greeting) queue_.push({peer.due, connection});
  peer.state = State::greeting;
  return encode_control({ControlKind::hello, token(connection)});
}

std::optional<Greetings::Hello> Greetings::take_due(Nanos now) {
  while (!queue_.empty() && queue_.top().due <= now) {
    const std::uint32_t connection = queue_.top().connection;
    queue_.pop();
    Peer& peer = peers_[connection];
    if (peer.state == State::gone) continue;
    const bool needs_hello = peer.due <= now && !peer.spoke;
    if (peer.due <= now) look_again(connection, now);
    queue_.push({peer.due, connection});
    if (needs_hello) return Hello{connection, encode_control({ControlKind::hello, token(connection)})};
  }
  return std::nullopt;
}

/// Each known client is checked twice in the longest silence: at one look it has just spoken, at the next it has not.
/// The looks at ten thousand connections that became known in one moment are spread by their tokens, for their HELOs
/// together would flood the server.
void Greetings::look_again(std::uint32_t connection, Nanos now) {
  Peer& peer = peers_[connection];
  peer.spoke = false;
  if (peer.state == State::known) {
    constexpr Nanos longest = longest_silence / 2;
    peer.due = now + longest - static_cast<Nanos>(token(connection) % (longest / 2));
  } else {
    peer.patience *= 2;
    peer.due = now + peer.patience;
  }
}

Greetings::Answer Greetings::receive(std::uint32_t connection, std::string_view message, Nanos now) {
  const auto control = decode_control(message);
  if (!control || control->kind == ControlKind::hello) return Answer::nonsense;
  Peer& peer = peers_[connection];
  const bool begun = peer.state == State::greeting || peer.state == State::known;
  if (!begun || control->token != token(connection)) return Answer::nothing;
  if (control->kind == ControlKind::full) return Answer::full;
  if (control->kind == ControlKind::bye) return Answer::bye;
  if (peer.state == State::known) return Answer::nothing;
  peer.state = State::known;
  look_again(connection, now);
  return Answer::welcome;
}

std::optional<ControlBytes> Greetings::end(std::uint32_t connection) {
  Peer& peer = peers_[connection];
  const bool begun = peer.state == State::greeting || peer.state == State::known;
  peer.state = State::gone;
  if (!begun) return std::nullopt;
  return encode_control({ControlKind::bye, token(connection)});
}

}  // namespace netdyno::load
