#include "loadgen/peer.hpp"

namespace netdyno::load {
namespace {

class OwnPeer final : public Peer {
 public:
  using Peer::Peer;

  void on_received(std::uint32_t number, bool good, Nanos now) override {
    Connection& connection = thread_.clients[number];
    connection.replied = !connection.decoder;
    if (!good) {
      thread_.transport.close(number);
      ++thread_.recorder.figures.errors.protocol;
      thread_.matching.let_go(number, now);
    } else if (connection.closing && connection.flight.in_order()) {
      carry_on(number, Matching::End::announced, now);
    } else if (connection.served()) {
      thread_.connecting.leave(number, events_);
    } else if (thread_.plan.flight_is_limited) {
      fill_places(number);
    }
  }

  void on_closed(std::uint32_t number, CloseReason reason, const std::string& cause, Nanos now) override {
    if (thread_.plan.reconnects && cause.empty() && !is_idle(number) && may_end(thread_.clients[number], reason))
      return carry_on(number, Matching::End::closed, now);
    ++errors_by(reason);
    if (!cause.empty()) thread_.recorder.figures.faults.note(cause, Population::connections, now);
    thread_.matching.let_go(number, now);
  }

  void on_reconnect_failed(std::uint32_t number, ConnectFailure, bool, Nanos now) override {
    thread_.matching.let_go(number, now);
  }

  GivenUp give_up_late(std::uint32_t number, Nanos now) override {
    Connection& connection = thread_.clients[number];
    const std::uint64_t late = thread_.matching.give_up(connection, now - thread_.plan.timeout, now);
    if (late > 0 && thread_.plan.flight_is_limited && connection.open()) fill_places(number);
    return {late};
  }

  std::uint64_t give_up_all(std::uint32_t number, Nanos now) override {
    Connection& connection = thread_.clients[number];
    return thread_.matching.give_up(connection, never, now) + connection.flight.unsent();
  }

 private:
  /// Whether a server of HTTP may end a connection here: after a reply, or unused. A request on its way is then resent;
  /// a reset, which may have destroyed replies, is allowed with none (RFC 9112, 9.3.1 and 9.6).
  static bool may_end(const Connection& connection, CloseReason reason) {
    if (connection.decoder || reason == CloseReason::unreadable) return false;
    if (reason == CloseReason::reset && connection.flight.unanswered() > 0) return false;
    return connection.replied ? connection.flight.in_order() : connection.flight.waiting() == 0;
  }

  /// The next connection takes what this one has not answered.
  void carry_on(std::uint32_t number, Matching::End end, Nanos now) {
    ++thread_.recorder.figures.connections.closed_after_reply;
    thread_.matching.take_back(number, "", end, now);
    thread_.connecting.leave(number, events_);
  }

  /// Sends what is due on a connection that had too many in flight, and has room again. It waited for answers, and not
  /// for this program.
  void fill_places(std::uint32_t number) {
    Connection& connection = thread_.clients[number];
    connection.limit_flight(thread_.plan.depth);
    if (!connection.blocked && connection.sendable() > 0) thread_.writer.resume(number, connection);
  }
};

}  // namespace

std::unique_ptr<Peer> make_own_peer(const ThreadParts& thread, TransportEvents& events) {
  return std::make_unique<OwnPeer>(thread, events);
}

}  // namespace netdyno::load
