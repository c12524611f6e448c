#include "servers/_shared/qt/accept_gate.hpp"

#include <sys/eventfd.h>

#include <utility>

namespace netdyno::qt {

std::vector<UniqueFd> spare_descriptors(std::size_t count) {
  std::vector<UniqueFd> spare;
  while (spare.size() < count) {
    UniqueFd descriptor{eventfd(0, EFD_CLOEXEC)};
    if (!descriptor) break;
    spare.push_back(std::move(descriptor));
  }
  return spare;
}

AcceptGate::AcceptGate(QTcpServer& server, std::size_t descriptors, std::function<bool()> room)
    : server_(server),
      descriptors_(descriptors),
      room_(std::move(room)),
      most_pending_(server.maxPendingConnections()) {
  again_.setSingleShot(true);
  QObject::connect(&again_, &QTimer::timeout, &again_, [this] { update(); });
  QObject::connect(&server, &QTcpServer::acceptError, &again_, [this] { close_for_a_while(); });
}

void AcceptGate::update() {
  spare_.clear();
  spare_ = spare_descriptors(descriptors_);
  if (spare_.size() < descriptors_ || !room_()) return close_for_a_while();
  spare_.clear();
  server_.setMaxPendingConnections(most_pending_);
  server_.resumeAccepting();
}

void AcceptGate::update_in_turn() {
  if (++in_a_row_ < most_in_a_row) return update();
  close();
  again_.start(0);
}

/// QTcpServer accepts on and on while it is at it, whether paused or not; only this limit makes it stop.
void AcceptGate::close() {
  in_a_row_ = 0;
  again_.stop();
  server_.setMaxPendingConnections(0);
  server_.pauseAccepting();
}

void AcceptGate::close_for_a_while() {
  close();
  again_.start(10);
}

}  // namespace netdyno::qt
