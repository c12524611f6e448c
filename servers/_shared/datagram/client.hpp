#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/datagram/address.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/fifo.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// A client that is known: its address, its session, and the messages that wait while one is served. Loop's thread
/// only.
template <Continuation Next>
class DatagramClient {
 public:
  /// So much may wait for one client, with what it takes to keep it: two of the longest datagrams, or a thousand short
  /// ones. What is more is dropped and counted.
  static constexpr std::size_t inbox_limit = 128 << 10;

  DatagramClient(const Address& address, PeerRoom::Place place, Loop<Next>& loop, const ServerOptions& options,
                 Counters& counters)
      : effects(options.write_mode),
        place_(std::move(place)),
        address_(address),
        loop_(loop),
        options_(options),
        counters_(counters),
        session_(make_session(options, counters)) {}

  const Address& address() const { return address_; }

  /// To be called from on_events: a client that waits gets the message in this turn, from where it was received. One
  /// that is busy gets a copy later.
  void deliver(std::string_view message) {
    if (idle()) {
      direct_ = message;
      loop_.soon(std::exchange(waiting_, Next{}));
    } else if (inbox_bytes_ + cost(message) > inbox_limit) {
      counters_.add_receive_dropped();
    } else {
      inbox_bytes_ += cost(message);
      inbox_.push(std::string{message});
    }
  }

  /// It is not known any more, and gets no more replies.
  void leave() {
    left_ = true;
    inbox_.clear();
    if (idle()) loop_.soon(std::exchange(waiting_, Next{}));
  }
  bool left() const { return left_; }
  /// All that it sent is served.
  bool idle() const { return static_cast<bool>(waiting_); }

  bool has_message() const { return !inbox_.empty(); }
  /// When it has a message, or has left; to be asked for only where there is neither.
  void when_message(Next next) { waiting_ = next; }
  /// Gives the message to the session; what that makes of it is in `effects` then.
  void receive() {
    effects.clear();
    if (left_) return;
    if (!direct_.empty()) {
      session_->receive(std::exchange(direct_, {}), effects);
    } else {
      const std::string message = inbox_.pop();
      inbox_bytes_ -= cost(message);
      session_->receive(message, effects);
    }
  }

  /// After a protocol error the session is of no more use. The client stays, and its next message meets a new one.
  void renew_session() { session_ = make_session(options_, counters_); }

  Effects effects;
  std::size_t index = 0;  // in Leaving

 protected:
  ~DatagramClient() = default;

 private:
  static std::size_t cost(std::string_view message) { return message.size() + sizeof(std::string) + 32; }

  const PeerRoom::Place place_;
  const Address address_;
  Loop<Next>& loop_;
  const ServerOptions& options_;
  Counters& counters_;
  std::unique_ptr<Session> session_;
  std::string_view direct_;  // the message that it waited for
  Fifo<std::string> inbox_;  // those after it
  std::size_t inbox_bytes_ = 0;
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
