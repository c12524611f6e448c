#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/datagram/address.hpp"
#include "lib/server/fifo.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// A client that is known: its address, its session, and the messages that wait while one is served. Loop's thread
/// only.
template <Continuation Next>
class DatagramClient {
 public:
  /// So much may wait for one client, with what it takes to keep it: two of the longest datagrams, or a thousand short
  /// ones. What is more, or more than PeerRoom has for all of them, is dropped and counted.
  static constexpr std::size_t inbox_limit = 128 << 10;

  DatagramClient(const Address& address, PeerRoom::Place its_place, Loop<Next>& loop, const ServerOptions& options,
                 Counters& counters)
      : effects(options.write_mode),
        place(std::move(its_place)),
        address_(address),
        loop_(loop),
        options_(options),
        counters_(counters),
        session_(make_session(options, counters)) {}

  const Address& address() const { return address_; }

  /// To be called from on_events: a client that waits gets the message in this turn, from where it was received. One
  /// that is busy gets a copy later.
  void deliver(std::string_view message) {
    if (!idle()) return wait_for_its_turn(message);
    // Only rpc leaves anything behind: a reply, which waits for the service time.
    if (options_.workload == Workload::rpc) {
      if (!place.hold(cost(message))) return counters_.add_receive_dropped();
      served_bytes_ = cost(message);
    }
    direct_ = message;
    loop_.call_soon(std::exchange(waiting_, Next{}));
  }

  /// It is not known any more, and gets no more replies.
  void leave() {
    left_ = true;
    inbox_.clear();
    if (idle()) loop_.call_soon(std::exchange(waiting_, Next{}));
  }
  bool left() const { return left_; }
  /// All that it sent is served.
  bool idle() const { return static_cast<bool>(waiting_); }

  bool has_message() const { return !inbox_.empty(); }
  /// When it has a message, or has left; to be asked for only where there is neither.
  void when_message(Next next) {
    served();
    waiting_ = next;
  }
  /// Gives the message to the session; what that makes of it is in `effects` then.
  void receive() {
    effects.clear();
    if (left_) return;
    if (!direct_.empty()) {
      longest_ = std::max(longest_, direct_.size());
      session_->receive(std::exchange(direct_, {}), effects);
    } else {
      served();
      const std::string message = inbox_.pop();
      longest_ = std::max(longest_, message.size());
      served_bytes_ = cost(message);
      inbox_bytes_ -= served_bytes_;
      session_->receive(message, effects);
    }
  }

  /// After a protocol error the session is of no more use. The client stays, and its next message meets a new one.
  void renew_session() { session_ = make_session(options_, counters_); }

  Effects effects;
  PeerRoom::Place place;
  std::size_t index = 0;  // in Leaving

 protected:
  ~DatagramClient() = default;

 private:
  /// Buffers that a longer message has grown are not kept by a client that is idle: there are thousands of clients.
  static constexpr std::size_t most_kept = 1 << 10;

  /// To keep it; while it is served, its reply takes its place.
  static std::size_t cost(std::string_view message) { return message.size() + sizeof(std::string) + 32; }

  void wait_for_its_turn(std::string_view message) {
    if (inbox_bytes_ + cost(message) > inbox_limit || !place.hold(cost(message)))
      return counters_.add_receive_dropped();
    inbox_bytes_ += cost(message);
    inbox_.push(std::string{message});
  }

  /// The last message is done with.
  void served() {
    if (served_bytes_ > 0) place.release(std::exchange(served_bytes_, 0));
    if (longest_ <= most_kept || !inbox_.empty()) return;
    longest_ = 0;
    effects = Effects{options_.write_mode};
    renew_session();
  }

  const Address address_;
  Loop<Next>& loop_;
  const ServerOptions& options_;
  Counters& counters_;
  std::unique_ptr<Session> session_;
  std::string_view direct_;  // the message that it waited for
  Fifo<std::string> inbox_;  // those after it
  std::size_t inbox_bytes_ = 0;
  std::size_t served_bytes_ = 0;  // held for the message that is served
  std::size_t longest_ = 0;       // message that the buffers have grown for
  bool left_ = false;
  Next waiting_{};  // for a message
};

/// A message, or the end: see DatagramClient::when_message.
inline auto message(DatagramClient<Coroutine>& client) {
  return Suspend{[&client](Coroutine me) { client.when_message(me); }};
}

/// Clients that are not known any more, until what serves them has come to its end. Loop's thread only.
template <typename Client>
class Leaving {
 public:
  void add(std::unique_ptr<Client> client) {
    client->index = clients_.size();
    client->leave();
    clients_.push_back(std::move(client));
  }

  /// The client's last act; end_turn() destroys it.
  void remove(const Client& client) { done_.push_back(&client); }

  void end_turn() {
    for (const Client* client : done_) {
      const std::size_t index = client->index;
      clients_.back()->index = index;
      std::swap(clients_[index], clients_.back());
      clients_.pop_back();
    }
    done_.clear();
  }

 private:
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<const Client*> done_;
};

}  // namespace netdyno
