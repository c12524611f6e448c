#pragma once

#include <functional>
#include <vector>

#include "lib/net/descriptor.hpp"
#include "servers/_shared/uring/ring.hpp"

namespace netdyno {

/// Takes in who connects. The kernel is asked once, and then says each time that somebody has (multishot). Ring's
/// thread only, after the constructor.
///
/// When descriptors or memory ran out, who connects waits in the kernel's queue, and the kernel is asked again after
/// 10 ms. It reads the limit when it is asked, so those whom it took in beyond one that was lowered since wait here.
class Acceptor {
 public:
  using Take = std::function<void(UniqueFd connection)>;

  Acceptor(Ring& ring, UniqueFd listener, Take take);

  void start();
  /// Nobody is taken in from now on.
  void stop();
  /// The kernel still has the listener: as long as it does, nobody else can listen where it listens.
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
