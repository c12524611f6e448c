#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "lib/measure/clock.hpp"
#include "loadgen/codec/codec.hpp"
#include "loadgen/match/flight.hpp"

namespace netdyno::load {

/// One client as its thread sees it. Small: there may be ten thousand, and each message meets memory that has been cold
/// since the one before. What every message needs comes first, and takes two lines of the cache.
struct alignas(64) Connection {
  /// A client whose connection ended (--requests-per-connection, or a server closed it that may) has `left`, and is
  /// `returning` as soon as it has a message. That of a foreign server is `away` after a connect that failed, the first
  /// one too, until the next. `gone` is for good.
  enum class State : unsigned char { waiting, connecting, open, left, returning, away, gone };

  State state = State::waiting;
  bool blocked = false;              // until on_writable
  bool joined = false;               // chat: has received something, so the server knows it
  bool replied = false;              // where the server may end it: it has brought a reply
  bool closing = false;              // and it brings no other
  bool held = false;                 // was last seen with something to send that had to wait
  std::unique_ptr<Decoder> decoder;  // of a reply that has come in part (stream_reader.hpp)
  Flight flight;
  std::uint64_t response_ns = 0;                                   // of those meant for the window, added up
  std::uint64_t answered = 0;                                      // how many these are
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();   // messages from here on have to wait
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();  // and those from here on are for the next connection
  std::string rest;                                                // of a message that the socket took in part
  std::size_t rest_at = 0;                                         // where the untaken bytes begin
  Nanos connect_began = 0;

  bool open() const { return state == State::open; }
  bool gone() const { return state == State::gone; }
  /// Messages that wait and may go out on this connection.
  std::uint64_t sendable() const { return std::min(flight.unsent(), end - flight.next_to_send()); }
  /// No more than so many may be in flight. What was given up holds no place.
  void limit_flight(std::uint64_t most) {
    const std::uint64_t out = flight.unanswered() - flight.overdue();
    end = std::min(last, flight.next_to_send() + (most > out ? most - out : 0));
  }
  /// Whether the message that waits for the next reply has not left whole. `blocked` is the cheap half.
  bool is_oldest_unfinished() const { return blocked && !rest.empty() && flight.unanswered() == 1; }
  /// All messages that it may carry are answered.
  bool served() const { return flight.next_to_send() == last && flight.unanswered() == 0; }
};

}  // namespace netdyno::load
