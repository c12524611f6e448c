#pragma once

#include <utility>

#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/zmq/router.hpp"

namespace netdyno {

/// A Router's input, waited for in a Loop by one coroutine. Loop's thread only.
class RouterInput final : public Watched {
 public:
  RouterInput(Loop<Coroutine>& loop, Router& router) : loop_(loop), router_(router) {
    if (!loop.poller().watch(router.fd(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room to watch ZeroMQ");
  }

  /// To be waited for only when receive() has just brought nothing: the descriptor tells what is new, once.
  auto arrival() {
    return Suspend{[this](Coroutine me) { waiting_ = me; }};
  }

  /// Before each turn: a send takes in what has happened meanwhile, and the descriptor does not tell it again.
  void poll() {
    if (waiting_ && router_.has_input()) wake();
  }

 private:
  void on_events(std::uint32_t) override { wake(); }
  void wake() {
    if (waiting_) loop_.call_soon(std::exchange(waiting_, Coroutine{}));
  }

  Loop<Coroutine>& loop_;
  Router& router_;
  Coroutine waiting_{};
};

}  // namespace netdyno
