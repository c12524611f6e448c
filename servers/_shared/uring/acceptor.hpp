#pragma once

#include <functional>
#include <vector>

#include "lib/net/descriptor.hpp"
#include "servers/_shared/uring/ring.hpp"

namespace netdyno {

/// Accepts connections. The kernel is asked once, and then reports each new connection (multishot). Ring's thread only,
/// after the constructor.
///
/// When descriptors or memory ran out, new connections wait in the kernel's queue, and the kernel is asked again after
/// 10 ms. It reads the limit when it is asked, so connections beyond a limit that was lowered since then wait here.
class Acceptor {
 public:
  using Take = std::function<void(UniqueFd connection)>;

  Acceptor(Ring& ring, UniqueFd listener, Take take);

  void start();
  /// Accepts no more connections.
  void stop();
  /// Whether the kernel still has the listener: as long as it does, no other socket can listen at its address.
  bool active() const { return listener_ || accepting_.in_flight() || cancelling_.in_flight(); }

 private:
  void on_accepted(Completion completion);
  void take_or_let_wait(UniqueFd connection);
  void pause();
  void go_on(Completion completion);
  void stop_accepting();
  void on_cancelled(Completion completion);

  Ring& ring_;
  UniqueFd listener_;
  const Take take_;
  std::vector<UniqueFd> waiting_;
  Operation accepting_ = operation<&Acceptor::on_accepted>(*this);
  Operation cancelling_ = operation<&Acceptor::on_cancelled>(*this);
  Timeout pause_{.operation = operation<&Acceptor::go_on>(*this)};
};

}  // namespace netdyno
