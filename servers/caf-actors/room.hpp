#pragma once

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/io/broker.hpp>
#include <unordered_map>

#include "messages.hpp"
#include "shared.hpp"

namespace netdyno {

/// The one actor that knows all connections. In chat every message goes through it, so that it meets every member
/// once. A broker without a socket: CAF runs it on the thread of the connections, which costs them no system call.
class Room final : public caf::io::broker {
 public:
  Room(caf::actor_config& config, Shared& shared);

 private:
  caf::behavior make_behavior() override;
  void on_exit() override;

  void admit(int fd);
  void broadcast(const Broadcast& said);
  void end();
  void leave_if_done();

  Shared& shared_;
  std::unordered_map<caf::actor_addr, caf::actor> members_;
  caf::actor ending_;  // waits for all members to leave; null before the server ends
};

}  // namespace netdyno
