#pragma once

#include <folly/io/async/AsyncSocket.h>
#include <folly/io/async/EventBase.h>
#include <folly/io/async/HHWheelTimer.h>
#include <sys/uio.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/session/session.hpp"

namespace netdyno {

class Worker;

/// One client: an AsyncSocket and what it calls back. On its worker's thread only, from construction to destruction.
class Connection final : folly::AsyncSocket::ReadCallback,
                         folly::AsyncSocket::WriteCallback,
                         folly::HHWheelTimerHighRes::Callback,
                         folly::EventBase::LoopCallback {
 public:
  Connection(UniqueFd fd, Worker& worker);

  void read();

  /// Takes a frame into the outbox; closes this reader when too much waits for it already.
  void deliver(const SharedFrame& frame);

  /// Ends the stream at what has arrived already: the session still answers that.
  void stop_receiving();

 private:
  using Clock = std::chrono::steady_clock;

  void getReadBuffer(void** data, std::size_t* size) override;
  void readDataAvailable(std::size_t size) noexcept override;
  void readEOF() noexcept override;
  void readErr(const folly::AsyncSocketException&) noexcept override;
  void writeSuccess() noexcept override;
  void writeErr(std::size_t written, const folly::AsyncSocketException&) noexcept override;
  void timeoutExpired() noexcept override;
  void callbackCanceled() noexcept override {}
  void runLoopCallback() noexcept override;

  void serve(std::string_view bytes);
  void end_session();
  void carry_out();
  bool write(std::span<const iovec> parts);
  void wait(std::chrono::nanoseconds duration);
  void schedule(Clock::duration delay);
  void send_outbox();
  void finish();
  void linger();
  void close();

  Worker& worker_;
  const ServerOptions& options_;
  folly::AsyncSocket::UniquePtr socket_;
  std::unique_ptr<Session> session_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  Outbox<iovec> outbox_;
  std::size_t under_way_ = 0;  // bytes of the write that is not done yet
  bool starting_ = false;      // a write is being given to the socket, which may be done with it at once
  Clock::time_point due_;      // when the service time is over
  std::string held_;           // what came in a service time: one read
  bool waits_ = false;         // for a service time to pass
  bool ended_ = false;         // by the peer
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace netdyno
