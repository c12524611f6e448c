#include "room.hpp"

#include <utility>

#include "connection.hpp"

namespace netdyno {

Room::Room(caf::actor_config& config, Shared& shared) : broker(config), shared_(shared) {}

caf::behavior Room::make_behavior() {
  set_down_handler([this](const caf::down_msg& down) {
    members_.erase(down.source);
    leave_if_done();
  });
  return {
      [this](const Joined& joined) { admit(joined.fd); },
      [this](const Broadcast& said) { broadcast(said); },
      [this](const ServerEnds&) { end(); },
  };
}

void Room::on_exit() { ending_ = nullptr; }

void Room::admit(int fd) {
  auto member = spawn<Connection, caf::monitored>(fd, caf::actor{this}, shared_);
  members_.emplace(member.address(), std::move(member));
}

void Room::broadcast(const Broadcast& said) {
  const bool to_all = shared_.options.audience == Audience::all;
  for (const auto& [address, member] : members_)
    if (to_all || member.id() != said.sender.id()) send(member, Heard{said.frames});
  send(said.sender, Replied{{}, said.next});
}

/// Every stream ends at what has arrived. The main thread has sent all clients that it accepted before this message.
void Room::end() {
  ending_ = caf::actor_cast<caf::actor>(current_sender());
  for (const auto& [address, member] : members_) send(member, ServerEnds{});
  leave_if_done();
}

void Room::leave_if_done() {
  if (!ending_ || !members_.empty()) return;
  send(ending_, RoomEmpty{});
  quit();
}

}  // namespace netdyno
