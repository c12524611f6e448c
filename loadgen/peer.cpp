#include "loadgen/peer.hpp"

namespace netdyno::load {

std::unique_ptr<Peer> make_peer(const Peer::Thread& thread) {
  return thread.plan.is_foreign() ? make_foreign_peer(thread) : make_own_peer(thread);
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
