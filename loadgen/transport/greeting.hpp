#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "lib/measure/clock.hpp"
#include "lib/protocol/handshake.hpp"

namespace netdyno::load {

/// The client's side of HELO, WELC, FULL and BYE! (protocol/WIRE.md) for all connections of a transport that has none
/// of its own: what to send, when to say it again, and what an answer means. Does no I/O; times come from outside.
/// Owning thread only.
class Greetings {
 public:
  /// A HELO without an answer is repeated after this long, then after twice as long, and so on; when to give up is the
  /// caller's business (`--connect-timeout`).
  static constexpr Nanos first_patience = 200'000'000;
  /// No client known to the server is silent for longer than this.
  static constexpr Nanos longest_silence = 10 * one_second;

  /// The meaning of a control message of the server.
  enum class Answer {
    nothing,   // heard before, or for an earlier client at this address: its token is not ours
    welcome,   // the server knows this connection from now on; once
    full,      // there is no room (or no more, when it was known)
    bye,       // the server has forgotten it
    nonsense,  // no answer at all: to be counted like any message that is not what was asked for
  };

  struct Hello {
    std::uint32_t connection;
    ControlBytes bytes;
  };

  /// Connections are numbered from 0. `secret`: the tokens come from it, so it must be hard to guess (fresh_secret).
  Greetings(std::uint32_t connections, std::uint64_t secret) : greetings_(connections), secret_(secret) {}

  /// Begins to greet, once for each connection, or again at another address; returns the first HELO, to be sent now.
  ControlBytes begin(std::uint32_t connection, Nanos now);

  /// The earliest moment when there may be a HELO to send; `never` while no connection greets or is known.
  Nanos due() const { return queue_.empty() ? never : queue_.top().due; }
  /// The next HELO that is due, to be sent now: a repeated one, or one of a connection that has been silent.
  std::optional<Hello> take_due(Nanos now);

  /// A message of the load went out, so the server hears of this connection anyway.
  void spoke(std::uint32_t connection) { greetings_[connection].spoke = true; }

  /// Takes a message of the server for which is_control() holds.
  Answer receive(std::uint32_t connection, std::string_view message, Nanos now);

  bool known(std::uint32_t connection) const { return greetings_[connection].state == GreetingState::known; }

  /// Lets go of a connection. Returns the BYE! to send, or nothing where the server has no use for it.
  std::optional<ControlBytes> end(std::uint32_t connection);

 private:
  enum class GreetingState : unsigned char { not_begun, greeting, known, gone };
  struct Greeting {
    Nanos due = never;
    Nanos patience = first_patience;
    GreetingState state = GreetingState::not_begun;
    bool spoke = false;  // since the last check
  };
  struct DueCheck {
    Nanos due;
    std::uint32_t connection;
    bool operator>(const DueCheck& other) const { return due > other.due; }
  };

  std::uint64_t token(std::uint32_t connection) const;
  void schedule_check(std::uint32_t connection, Nanos now);

  std::vector<Greeting> greetings_;
  std::uint64_t secret_;
  // One entry for each connection that has begun; a due time that was put off is noticed when its entry comes up.
  std::priority_queue<DueCheck, std::vector<DueCheck>, std::greater<>> queue_;
};

/// Unpredictable bits, of the machine's own generator.
std::uint64_t fresh_secret();

}  // namespace netdyno::load
