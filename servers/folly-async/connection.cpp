#include "connection.hpp"

#include <folly/net/NetworkSocket.h>
#include <sys/socket.h>

#include <cassert>
#include <utility>

#include "worker.hpp"

namespace netdyno {
namespace {

/// How long a connection that is closed because of what the peer sent may take to deliver the last replies.
constexpr std::chrono::seconds linger_time{1};

}  // namespace

Connection::Connection(UniqueFd fd, Worker& worker)
    : worker_(worker),
      options_(worker.options()),
      socket_(new folly::AsyncSocket(&worker.base(), folly::NetworkSocket::fromFd(fd.release()))),
      session_(make_session(options_, worker.counters())),
      effects_(options_.write_mode),
      next_(effects_.begin()),
      outbox_(options_.write_mode, options_.delivery_mode(), options_.outbox_limit) {}

void Connection::read() { socket_->setReadCB(this); }

void Connection::getReadBuffer(void** data, std::size_t* size) {
  *data = worker_.buffer().data();
  *size = worker_.buffer().size();
}

void Connection::readDataAvailable(std::size_t size) noexcept {
  const std::string_view bytes{worker_.buffer().data(), size};
  if (!waits_) return serve(bytes);
  held_ = bytes;
  socket_->setReadCB(nullptr);
}

void Connection::serve(std::string_view bytes) {
  effects_.clear();
  session_->receive(bytes, effects_);
  next_ = effects_.begin();
  carry_out();
}

void Connection::readEOF() noexcept {
  if (closed_) return;  // a socket that is closed says this too
  ended_ = true;
  if (closing_) return outbox_.empty() ? close() : void();
  if (!waits_) end_session();
}

void Connection::end_session() {
  effects_.clear();
  session_->end(effects_);
  next_ = effects_.begin();
  carry_out();
}

void Connection::readErr(const folly::AsyncSocketException&) noexcept { close(); }

/// Carries out the effects from next_ on. One that takes time ends this call and the reading; what ends it comes back
/// here.
void Connection::carry_out() {
  while (next_ != effects_.end() && !closed_) {
    const Effect& effect = *next_++;
    switch (effect.kind) {
      case Effect::Kind::write: {
        const auto bytes = effects_.bytes(effect);
        const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
        if (!write({&part, 1})) return socket_->setReadCB(nullptr);
        break;
      }
      case Effect::Kind::broadcast:
        worker_.broadcast(effect.frame, *this);
        break;
      case Effect::Kind::wait:
        // It reads on, once, as AsyncSocket reports a reset only to a read.
        if (held_.empty() && !ended_) read();
        return wait(effect.remaining());
      case Effect::Kind::burn:
        burn_cpu(effect.duration);
        break;
      case Effect::Kind::close:
        finish();
        break;
    }
  }
  if (closed_) return;
  if (!held_.empty()) return serve(std::exchange(held_, {}));
  if (!ended_) return read();
  if (!closing_) end_session();
}

/// Gives all parts to the socket, for one sendmsg(2). True when they are sent; otherwise writeSuccess comes later.
bool Connection::write(std::span<const iovec> parts) {
  assert(under_way_ == 0);  // a session replies or broadcasts, so there is one writer at a time
  for (const iovec& part : parts) under_way_ += part.iov_len;
  starting_ = true;
  socket_->writev(this, parts.data(), parts.size());
  starting_ = false;
  return under_way_ == 0;
}

void Connection::writeSuccess() noexcept {
  worker_.counters().add_bytes_out(under_way_);
  const bool broadcast = !outbox_.empty();
  if (broadcast) outbox_.sent(under_way_);
  under_way_ = 0;
  if (starting_) return;  // the caller of write() goes on
  broadcast ? send_outbox() : carry_out();
}

void Connection::writeErr(std::size_t written, const folly::AsyncSocketException&) noexcept {
  worker_.counters().add_bytes_out(written);
  close();
}

void Connection::wait(std::chrono::nanoseconds duration) {
  waits_ = true;
  due_ = Clock::now() + duration;
  schedule(duration);
}

void Connection::schedule(Clock::duration delay) {
  worker_.timer().scheduleTimeout(this, std::chrono::ceil<std::chrono::microseconds>(delay));
}

/// The wheel turns in ticks and may be one early.
void Connection::timeoutExpired() noexcept {
  if (closing_) return close();
  const auto left = due_ - Clock::now();
  if (left.count() > 0) return schedule(left);
  waits_ = false;
  carry_out();
}

void Connection::deliver(const SharedFrame& frame) {
  if (closing_ || closed_) return;
  bool taken = outbox_.push(frame);
  if (!taken) {
    send_outbox();  // what waits for the end of the turn only
    taken = closed_ || outbox_.push_unless_stuck(frame, socket_->getNetworkSocket().toFd());
  }
  if (!taken) {
    worker_.counters().add_slow_closed();
    return close();
  }
  if (!closed_ && !isLoopCallbackScheduled()) worker_.base().runInLoop(this);
}

/// At the end of the loop's turn, so that what several senders broadcast in it leaves in one write.
void Connection::runLoopCallback() noexcept { send_outbox(); }

void Connection::send_outbox() {
  while (under_way_ == 0 && !closed_) {
    const auto batch = outbox_.next();
    if (batch.empty()) return closing_ ? linger() : void();
    write(batch);
  }
}

void Connection::stop_receiving() { shutdown(socket_->getNetworkSocket().toFd(), SHUT_RD); }

void Connection::finish() {
  closing_ = true;
  cancelLoopCallback();
  send_outbox();
}

/// Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes resets
/// the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6).
void Connection::linger() {
  if (ended_) return close();
  socket_->shutdownWrite();
  schedule(linger_time);
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  cancelTimeout();
  cancelLoopCallback();
  socket_->closeNow();
  worker_.remove(*this);
}

}  // namespace netdyno
