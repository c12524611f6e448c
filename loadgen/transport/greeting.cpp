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
  Greeting& greeting = greetings_[connection];
  greeting.due = now + greeting.patience;
  if (greeting.state != GreetingState::greeting) queue_.push({greeting.due, connection});
  greeting.state = GreetingState::greeting;
  return encode_control({ControlKind::hello, token(connection)});
}

std::optional<Greetings::Hello> Greetings::take_due(Nanos now) {
  while (!queue_.empty() && queue_.top().due <= now) {
    const std::uint32_t connection = queue_.top().connection;
    queue_.pop();
    Greeting& greeting = greetings_[connection];
    if (greeting.state == GreetingState::gone) continue;
    const bool needs_hello = greeting.due <= now && !greeting.spoke;
    if (greeting.due <= now) schedule_check(connection, now);
    queue_.push({greeting.due, connection});
    if (needs_hello) return Hello{connection, encode_control({ControlKind::hello, token(connection)})};
  }
  return std::nullopt;
}

/// Each known client is checked twice in the longest silence: at one check it has just spoken, at the next it has not.
/// The checks of ten thousand connections that became known in one moment are spread by their tokens, for their HELOs
/// together would flood the server.
void Greetings::schedule_check(std::uint32_t connection, Nanos now) {
  Greeting& greeting = greetings_[connection];
  greeting.spoke = false;
  if (greeting.state == GreetingState::known) {
    constexpr Nanos longest = longest_silence / 2;
    greeting.due = now + longest - static_cast<Nanos>(token(connection) % (longest / 2));
  } else {
    greeting.patience *= 2;
    greeting.due = now + greeting.patience;
  }
}

Greetings::Answer Greetings::receive(std::uint32_t connection, std::string_view message, Nanos now) {
  const auto control = decode_control(message);
  if (!control || control->kind == ControlKind::hello) return Answer::nonsense;
  Greeting& greeting = greetings_[connection];
  const bool begun = greeting.state == GreetingState::greeting || greeting.state == GreetingState::known;
  if (!begun || control->token != token(connection)) return Answer::nothing;
  if (control->kind == ControlKind::full) return Answer::full;
  if (control->kind == ControlKind::bye) return Answer::bye;
  if (greeting.state == GreetingState::known) return Answer::nothing;
  greeting.state = GreetingState::known;
  schedule_check(connection, now);
  return Answer::welcome;
}

std::optional<ControlBytes> Greetings::end(std::uint32_t connection) {
  Greeting& greeting = greetings_[connection];
  const bool begun = greeting.state == GreetingState::greeting || greeting.state == GreetingState::known;
  greeting.state = GreetingState::gone;
  if (!begun) return std::nullopt;
  return encode_control({ControlKind::bye, token(connection)});
}

}  // namespace netdyno::load
