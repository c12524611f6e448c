#pragma once

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/protocol/framing.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/server/registry.hpp"
#include "lib/server/send_backlog.hpp"
#include "lib/session/session.hpp"

namespace netdyno {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Asio asks the kernel by io_uring, and not by epoll.
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
inline constexpr bool over_io_uring = true;
#else
inline constexpr bool over_io_uring = false;
#endif

/// For asio::async_write: hand the kernel a whole part at once, where asio::transfer_all stops at 64 KiB.
inline constexpr auto whole = [](const error_code& error, std::size_t) {
  return error ? 0 : std::numeric_limits<std::size_t>::max();
};

/// How long a connection that is closed because of what the peer sent may take to deliver the last replies.
inline constexpr std::chrono::seconds linger_time{1};

class AsioConnection;

/// State shared by all connections.
struct Shared {
  const ServerOptions& options;
  Counters counters;
  Registry<AsioConnection> registry;
  bool reads_parts = false;  // of a frame, its length and its body, each by itself
};

/// One client. On its own strand, or the thread of its context, only, but for the constructor, executor() and the
/// counters.
class AsioConnection : public std::enable_shared_from_this<AsioConnection> {
 public:
  AsioConnection(tcp::socket socket, Shared& shared)
      : shared_(shared),
        options_(shared.options),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        session_(make_session(options_, shared.counters)),
        buffer_(std::make_unique_for_overwrite<char[]>(options_.read_buffer)),  // untouched until something is read
        effects_(options_.write_mode),
        outbox_(options_.write_mode, options_.delivery_mode(), options_.outbox_limit),
        backlog_(options_.outbox_limit) {}

  tcp::socket::executor_type executor() { return socket_.get_executor(); }

  void read() {
    const auto most = shared_.reads_parts ? std::min(parts_.missing(), options_.read_buffer) : options_.read_buffer;
    socket_.async_read_some(asio::buffer(buffer_.get(), most),
                            [self = shared_from_this()](error_code error, std::size_t n) { self->on_read(error, n); });
  }

  /// Any thread. This server is behind with sending what this reader would take: senders must wait, and the reader is
  /// not slow for that.
  bool behind() const { return backlog_.any(); }

  /// Checks whether that is still so.
  void check_backlog() { backlog_.check(outbox_, closed_ ? -1 : socket_.native_handle()); }

  /// Any thread. Has its strand take a frame into the outbox.
  void post(const SharedFrame& frame) {
    backlog_.note_posted(*frame);
    asio::dispatch(executor(), [self = shared_from_this(), frame] {
      self->backlog_.note_arrived(*frame);
      self->deliver(frame);
    });
  }

  /// Takes a frame into the outbox; closes a reader that does not read when too much waits for it already.
  void deliver(const SharedFrame& frame) {
    if (closing_) return;
    const bool idle = outbox_.empty();
    if (!backlog_.push(outbox_, frame, socket_.native_handle())) {
      shared_.counters.add_slow_closed();
      return close();
    }
    if (idle) send_outbox();
  }

  /// Ends the stream at what has arrived already: the session still answers that.
  void stop_receiving() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_receive, gone_already);
  }

 private:
  void on_read(error_code error, std::size_t n) {
    if (error && error != asio::error::eof) return close();
    effects_.clear();
    if (n > 0) {
      if (shared_.reads_parts) parts_.take({buffer_.get(), n});
      session_->receive({buffer_.get(), n}, effects_);
    } else if (closing_) {
      return close();
    } else {
      session_->end(effects_);
    }
    next_ = effects_.begin();
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its handler comes back here.
  void carry_out() {
    while (next_ != effects_.end()) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write:
          return write(effects_.bytes(effect));
        case Effect::Kind::broadcast:
          if (broadcast(effect.frame) && !closed_) return wait_for_others();
          break;
        case Effect::Kind::wait:
          return wait(effect.remaining());
        case Effect::Kind::burn:
          burn_cpu(effect.duration);
          break;
        case Effect::Kind::close:
          // Behind the frames that are already on their way to this strand.
          return asio::post(executor(), [self = shared_from_this()] { self->finish(); });
      }
    }
    read();
  }

  void write(std::string_view bytes) {
    assert(outbox_.empty());  // a session replies or broadcasts, so there is one writer at a time
    asio::async_write(socket_, asio::buffer(bytes), whole,
                      [self = shared_from_this()](error_code error, std::size_t n) {
                        self->shared_.counters.add_bytes_out(n);
                        if (error) return self->close();
                        self->carry_out();
                      });
  }

  void wait(std::chrono::nanoseconds duration) {
    if (!watched_) watch_for_reset();
    if (reset_) return close();
    waits_ = true;
    timer_.expires_after(duration);
    timer_.async_wait([self = shared_from_this()](error_code) {
      self->waits_ = false;
      if (!self->closed_) self->carry_out();
    });
  }

  /// Asked for once: until the connection is over, nothing comes of it but its reset.
  void watch_for_reset() {
    watched_ = true;
    socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](error_code error) {
      if (error || self->closed_) return;
      self->reset_ = is_reset(self->socket_.native_handle());
      if (!self->reset_) return self->watch_for_reset();  // over io_uring, the end of the peer's stream ends this, too
      if (self->waits_) self->close();
    });
  }

  /// True where a reader is behind now.
  bool broadcast(const SharedFrame& frame) {
    const auto members = shared_.registry.snapshot();
    bool behind = false;
    for (const auto& member : *members) {
      if (member.get() == this && options_.audience == Audience::others) continue;
      if (options_.threads == 1) {
        member->deliver(frame);  // as post() would do here, for a third of the price
      } else {
        member->post(frame);
      }
      behind |= member->behind();
    }
    return behind;
  }

  /// Whether a reader is still behind. Each checks for itself until the next call.
  bool others_wait() {
    const auto members = shared_.registry.snapshot();
    bool behind = false;
    for (const auto& member : *members) {
      if (!member->behind()) continue;
      behind = true;
      asio::dispatch(member->executor(), [member] { member->check_backlog(); });
    }
    return behind;
  }

  /// Goes on when no reader is behind any more.
  void wait_for_others() {
    timer_.expires_after(SendBacklog::a_while);
    timer_.async_wait([self = shared_from_this()](error_code) {
      self->others_wait() && !self->closed_ ? self->wait_for_others() : self->carry_out();
    });
  }

  void send_outbox() {
    const auto batch = outbox_.next();
    if (batch.empty()) return closing_ ? linger() : void();
    asio::async_write(socket_, batch, whole, [self = shared_from_this()](error_code error, std::size_t n) {
      self->shared_.counters.add_bytes_out(n);
      if (error) return self->close();
      self->outbox_.sent(n);
      self->check_backlog();
      self->send_outbox();
    });
  }

  void finish() {
    if (closed_) return;
    closing_ = true;
    if (outbox_.empty()) linger();
  }

  /// Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes
  /// resets the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6).
  void linger() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_send, gone_already);
    timer_.expires_after(linger_time);
    timer_.async_wait([self = shared_from_this()](error_code) { self->close(); });
    read();
  }

  void close() {
    closing_ = true;
    if (std::exchange(closed_, true)) return;
    backlog_.clear();
    error_code gone_already;
    if constexpr (over_io_uring) {
      // Ends what is under way; the socket is closed with the last handler. Asio (1.81) hands what it keeps of a closed
      // socket to the next one, while an operation on it may still be on its way back: the next one would then hang.
      socket_.shutdown(tcp::socket::shutdown_both, gone_already);
    } else {
      socket_.close(gone_already);
    }
    timer_.cancel();
    shared_.registry.leave(shared_from_this());
  }

  Shared& shared_;
  const ServerOptions& options_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<char[]> buffer_;
  FrameParts parts_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  Outbox<asio::const_buffer> outbox_;
  SendBacklog backlog_;
  bool watched_ = false;  // for a reset
  bool reset_ = false;    // by the peer
  bool waits_ = false;    // for a service time to pass
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace netdyno
