#pragma once

#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "lib/session/effects.hpp"

namespace netdyno {

/// The clients of one loop. A `Client` has an index and an fd(); it takes a frame by post(), and sends what it has by
/// flush(). Loop's thread only.
template <typename Client>
class Roster {
 public:
  bool empty() const { return clients_.empty(); }

  void add(std::unique_ptr<Client> client) {
    client->index = clients_.size();
    clients_.push_back(std::move(client));
  }

  /// Queues `frame` for all members except `except` (which may be null); end_turn() sends it.
  void broadcast(const SharedFrame& frame, const Client* except) {
    for (const auto& client : clients_)
      if (client.get() != except && client->post(frame)) unflushed_.push_back(client.get());
  }

  /// The client's last act; end_turn() destroys it.
  void remove(const Client& client) { removed_.push_back(&client); }

  /// After a turn of the loop: what several senders broadcast in it leaves for a recipient in one writev, and the
  /// events of the turn may have named a client that was removed in it.
  void end_turn() {
    for (Client* client : unflushed_) client->flush();
    unflushed_.clear();
    for (const Client* client : removed_) {
      const std::size_t index = client->index;
      clients_.back()->index = index;
      std::swap(clients_[index], clients_.back());
      clients_.pop_back();
    }
    removed_.clear();
  }

  /// Each client's stream ends at what has arrived: the sessions still answer that.
  void stop_receiving() {
    for (const auto& client : clients_) shutdown(client->fd(), SHUT_RD);
  }

  void clear() { clients_.clear(); }

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> unflushed_;
  std::vector<const Client*> removed_;
};

}  // namespace netdyno
