#pragma once

#include <cstdint>
#include <vector>

#include "loadgen/match/connection.hpp"
#include "loadgen/plan/schedule.hpp"

namespace netdyno::load {

/// Messages that a client has sent before the load (--start at-once), and how many its thread has received.
struct EarlySpeech {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// The connections of one thread, by their numbers in its share, and what is counted over them. Owning thread only.
struct Clients {
  explicit Clients(const ThreadShare& share_of_thread) : share(share_of_thread), connections(share.size()) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(connections.size()); }
  Connection& operator[](std::uint32_t number) { return connections[number]; }
  const Connection& operator[](std::uint32_t number) const { return connections[number]; }

  const ThreadShare share;
  std::vector<Connection> connections;
  std::uint32_t open = 0;                    // connected, or to be reconnected
  std::uint32_t joined = 0;                  // chat: of these, those that the server knows
  std::uint64_t waiting = 0;                 // messages of open connections that are not answered, sent or not
  std::uint64_t overdue = 0;                 // of these, given up
  std::vector<EarlySpeech> early;            // by connection; empty where no client sends before the load
  std::vector<std::uint32_t> just_received;  // connections whose early messages were received lately
};

}  // namespace netdyno::load
