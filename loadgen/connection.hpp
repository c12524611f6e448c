#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lib/measure/clock.hpp"
#include "loadgen/codec.hpp"
#include "loadgen/flight.hpp"

namespace netdyno::load {

/// One client as its thread sees it. Small: there may be ten thousand, and each message meets memory that has been cold
/// since the one before. What every message needs comes first, and takes two lines of the cache.
struct alignas(64) Connection {
  enum class State : unsigned char { waiting, connecting, open, gone };

  State state = State::waiting;
  bool blocked = false;              // until on_writable
  bool joined = false;               // chat: has received something, so the server knows it
  std::unique_ptr<Decoder> decoder;  // of a reply that has come in part (stream_reader.hpp)
  Flight flight;
  std::string rest;         // of a message that the socket took in part
  std::size_t rest_at = 0;  // where the untaken bytes begin
  Nanos connect_began = 0;

  bool open() const { return state == State::open; }
};

}  // namespace netdyno::load
