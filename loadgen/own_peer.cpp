#include "loadgen/peer.hpp"

namespace netdyno::load {
namespace {

class OwnPeer final : public Peer {
 public:
  using Peer::Peer;

  void received(std::uint32_t number, bool good, Nanos now) override {
    if (!good) {
      thread_.transport.close(number);
      ++thread_.recorder.figures.errors.protocol;
      thread_.matching.let_go(number, now);
    } else if (thread_.clients[number].served()) {
      thread_.connecting.leave(number, thread_.events);
    } else if (thread_.plan.flight_is_limited) {
      fill_places(number);
    }
  }

  void closed(std::uint32_t number, CloseReason reason, const std::string& cause, Nanos now) override {
    ++errors_by(reason);
    if (!cause.empty()) thread_.recorder.figures.faults.note(cause, Population::connections, now);
    thread_.matching.let_go(number, now);
  }

  void reconnect_failed(std::uint32_t number, ConnectFailure, bool, Nanos now) override {
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
  /// Sends what is due on a connection that had too many in flight, and has room again. It waited for answers, and not
  /// for this program.
  void fill_places(std::uint32_t number) {
    Connection& connection = thread_.clients[number];
    connection.limit_flight(thread_.plan.depth);
    if (!connection.blocked && connection.sendable() > 0) thread_.sender.writable(number, connection);
  }
};

}  // namespace

std::unique_ptr<Peer> make_own_peer(const Peer::Thread& thread) { return std::make_unique<OwnPeer>(thread); }

}  // namespace netdyno::load
