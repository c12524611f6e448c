#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"
#include "lib/session/counters.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/zmq/router.hpp"

namespace netdyno {

/// How long, after a shutdown signal, a server takes what is on its way through the peers' and its own I/O threads.
inline constexpr std::chrono::milliseconds on_its_way{200};

/// The room for unanswered requests of one peer. A ROUTER takes from all peers in turn, and cannot leave one alone for
/// a while: so the room is bounded, and requests beyond the bound get no answer. In messages it is half of `--hwm`:
/// libzmq learns of what a peer has taken in steps of half the mark (compute_lwm of its pipe), so the answers to so
/// many find room in one burst if the peer reads. In bytes it is `--max-frame`, but one is always taken. And all peers
/// together have no more than PeerRoom holds.
class WaitingRoom {
 public:
  explicit WaitingRoom(const ZmqServerOptions& options)
      : messages_left_((options.zmq.hwm + 1) / 2), bytes_(options.server.max_frame) {}

  /// False when there is no room for a request of so many bytes.
  bool take(PeerRoom::Place& place, std::size_t size) {
    if (messages_left_ == 0 || (taken_ > 0 && taken_ + size > bytes_) || !place.hold(cost(size))) return false;
    --messages_left_;
    taken_ += size;
    return true;
  }
  void give_back(PeerRoom::Place& place, std::size_t size) {
    ++messages_left_;
    taken_ -= size;
    place.release(cost(size));
  }

 private:
  /// With what libzmq keeps of a message beside its bytes.
  static std::size_t cost(std::size_t size) { return size + sizeof(zmq::message_t) + 64; }

  int messages_left_;
  std::size_t bytes_;
  std::size_t taken_ = 0;
};

/// A client as the reception knows it. Servers derive theirs from it.
struct ZmqPeer {
  std::string id;  // its routing id
  PeerRoom::Place place;
};

/// Tracks which peers come and go, and passes messages to the server (protocol/WIRE.md). Router's thread only. The
/// `Server` is called back:
///   std::unique_ptr<Peer> make_peer(std::string id, PeerRoom::Place)   a peer makes itself known
///   void on_message(Peer&, zmq::message_t)                             one message of the workload
///   void on_gone(std::unique_ptr<Peer>)           it is not known any more; perhaps from within send() or broadcast()
template <typename Peer, typename Server>
class Reception {
 public:
  using Table = PeerTable<std::string, Peer>;
  using Clock = typename Table::Clock;

  Reception(const ServerOptions& options, Router& router, Counters& counters, Server& server)
      : options_(options),
        router_(router),
        counters_(counters),
        server_(server),
        room_(options.peers),
        peers_(options, room_, counters, [this](const std::string& id, PeerRoom::Place place) {
          return server_.make_peer(id, std::move(place));
        }) {}

  void take(Router::Arrived arrived) {
    const std::string_view id = bytes_of(arrived.from);
    if (!arrived.one_part || id.size() > longest_id) return counters_.add_protocol_error();
    if (arrived.body.size() > options_.max_frame + frame_header_size) return counters_.add_oversized();
    auto ruling = peers_.receive(std::string{id}, bytes_of(arrived.body), Clock::now(), make_bye());
    if (ruling.answer && send_control(id, *ruling.answer) == Router::Result::gone) forget(std::string{id});
    if (ruling.gone) server_.on_gone(std::move(ruling.gone));
    if (ruling.action == Table::Ruling::Action::message) server_.on_message(*ruling.peer, std::move(arrived.body));
  }

  /// Drops and counts what a peer does not take, and forgets a peer that is gone.
  void send(const Peer& peer, zmq::message_t message) {
    if (!try_to_send(peer.id, std::move(message))) forget(peer.id);
  }

  /// Sends to all except `except` (which may be null). All messages share the frame's bytes.
  void broadcast(const SharedFrame& frame, const Peer* except) {
    zmq::message_t message = message_sharing(frame);
    std::vector<std::string> gone;
    peers_.for_each([&](const std::string& id, const Peer& peer) {
      if (&peer != except && !try_to_send(id, copy_of(message))) gone.push_back(id);
    });
    for (const std::string& id : gone) forget(id);
  }

  /// Forgets peers that have been silent for too long, and returns when to check again.
  typename Clock::time_point forget_silent() {
    const auto now = Clock::now();
    peers_.expire(now, make_bye());
    return peers_.next_expiry(now);
  }

  /// The server ends.
  void forget_all() { peers_.clear(make_bye()); }

 private:
  /// ZMTP 3.1 (rfc.zeromq.org/spec/37) has none that are longer, but libzmq lets one through that a client forged.
  static constexpr std::size_t longest_id = 255;

  /// False when there is no such peer any more.
  bool try_to_send(std::string_view id, zmq::message_t message) {
    const std::size_t size = message.size();
    const auto result = router_.send(id, std::move(message));
    result == Router::Result::taken ? counters_.add_bytes_out(size) : counters_.add_send_dropped();
    return result != Router::Result::gone;
  }

  /// Nothing is counted: a client whose queue has no room for this asks again, or is gone.
  Router::Result send_control(std::string_view id, const ControlBytes& bytes) {
    return router_.send(id, zmq::message_t{bytes.data(), bytes.size()});
  }

  auto make_bye() { return std::bind_front(&Reception::send_bye, this); }
  void send_bye(std::string_view id, std::uint64_t token, std::unique_ptr<Peer> peer) {
    send_control(id, encode_control({ControlKind::bye, token}));
    server_.on_gone(std::move(peer));
  }

  /// No effect on one that is not known.
  void forget(const std::string& id) {
    if (auto peer = peers_.remove(id)) server_.on_gone(std::move(peer));
  }

  const ServerOptions& options_;
  Router& router_;
  Counters& counters_;
  Server& server_;
  PeerRoom room_;
  Table peers_;
};

}  // namespace netdyno
