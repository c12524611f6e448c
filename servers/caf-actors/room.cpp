#include "room.hpp"

#include <utility>

#include "connection.hpp"

namespace netdyno {

Room::Room(caf::actor_config& config, Shared& shared) : broker(config), shared_(shared) {}

caf::behavior Room::make_behavior() {
  set_down_handler([this](const caf::down_msg& down) { forget(down.source.id()); });
  return {
      [this](const Joined& joined) { admit(joined.fd); },
      [this](const Broadcast& said) { broadcast(said); },
      [this](const Behind& behind) { note_behind(behind.now); },
      [this](const ServerEnds&) { end(); },
  };
}

void Room::on_exit() {
  waiting_senders_.clear();
  ending_ = nullptr;
}

void Room::admit(int fd) {
  auto member = spawn<Connection, caf::monitored>(fd, caf::actor{this}, shared_);
  members_.emplace(member.id(), std::move(member));
}

void Room::forget(caf::actor_id member) {
  members_.erase(member);
  behind_.erase(member);
  let_senders_go_on();
  leave_if_done();
}

void Room::broadcast(const Broadcast& said) {
  const bool to_all = shared_.options.audience == Audience::all;
  for (const auto& [id, member] : members_)
    if (to_all || id != said.sender.id()) send(member, Heard{said.frames});
  waiting_senders_.emplace_back(said.sender, said.next);
  let_senders_go_on();
}

void Room::note_behind(bool now) {
  const caf::actor_id member = current_sender()->id();
  if (now && members_.contains(member)) {
    behind_.insert(member);
  } else {
    behind_.erase(member);
  }
  let_senders_go_on();
}

void Room::let_senders_go_on() {
  if (!behind_.empty()) return;
  for (const auto& [connection, next] : waiting_senders_) send(connection, Replied{{}, next});
  waiting_senders_.clear();
}

/// Every stream ends at what has arrived. The main thread has sent all clients that it accepted before this message.
void Room::end() {
  ending_ = caf::actor_cast<caf::actor>(current_sender());
  for (const auto& [id, member] : members_) send(member, ServerEnds{});
  leave_if_done();
}

void Room::leave_if_done() {
  if (!ending_ || !members_.empty()) return;
  send(ending_, RoomEmpty{});
  quit();
}

}  // namespace netdyno
