#pragma once

#include <caf/actor.hpp>
#include <caf/io/broker.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

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
  void forget(caf::actor_id member);
  void broadcast(const Broadcast& said);
  void note_behind(bool now);
  void let_senders_go_on();
  void end();
  void leave_if_done();

  Shared& shared_;
  std::unordered_map<caf::actor_id, caf::actor> members_;
  std::unordered_set<caf::actor_id> behind_;                  // members; senders wait until there are none
  std::vector<std::pair<caf::actor, Next>> waiting_senders_;  // and what each does then
  caf::actor ending_;  // waits for all members to leave; null before the server ends
};

}  // namespace netdyno
