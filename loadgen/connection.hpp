#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "loadgen/clock.hpp"
#include "loadgen/codec.hpp"
#include "loadgen/flight.hpp"

namespace netdyno::load {

/// One client as its thread sees it. Small: there may be ten thousand.
struct Connection {
  enum class State : unsigned char { waiting, connecting, open, gone };

  std::unique_ptr<Decoder> decoder;  // none where whole messages come: the thread has one reader for all
  Flight flight;
  std::string rest;         // of a message that the socket took in part
  std::size_t rest_at = 0;  // where the untaken bytes begin
  Nanos connect_began = 0;
  State state = State::waiting;
  bool blocked = false;  // until on_writable
  bool joined = false;   // chat: has received something, so the server knows it

  bool open() const { return state == State::open; }
};

}  // namespace netdyno::load
