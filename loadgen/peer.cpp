#include "loadgen/peer.hpp"

namespace netdyno::load {

std::unique_ptr<Peer> make_peer(const ThreadParts& thread, TransportEvents& events) {
  return thread.plan.is_foreign() ? make_foreign_peer(thread, events) : make_own_peer(thread, events);
}

std::uint64_t& Peer::errors_by(CloseReason reason) {
  auto& errors = thread_.recorder.figures.errors;
  switch (reason) {
    case CloseReason::closed_by_server:
    case CloseReason::cut_off:
      return errors.closed_by_server;
    case CloseReason::reset:
      return errors.reset;
    case CloseReason::unreadable:
      break;
  }
  return errors.protocol;
}

}  // namespace netdyno::load
