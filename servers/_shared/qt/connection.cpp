#include "servers/_shared/qt/connection.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <QCoreApplication>
#include <QEvent>
#include <algorithm>
#include <thread>
#include <utility>

namespace netdyno::qt {
namespace {

std::size_t size_of(std::span<const std::string_view> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

/// Calls `ring` in its own thread whenever an event is posted to it. As a queued call of a lambda does, but nothing
/// that the posting thread has made is read before `ring` has taken a lock.
class Bell : public QObject {
 public:
  Bell(QObject* parent, std::function<void()> ring) : QObject(parent), ring_(std::move(ring)) {}

 private:
  void customEvent(QEvent*) override { ring_(); }

  const std::function<void()> ring_;
};

void make_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

}  // namespace

void QtServerState::stop_receiving() {
  ending = true;
  const auto members = registry.snapshot();
  for (const auto& connection : *members) connection->stop_receiving();
}

QtConnection::QtConnection(UniqueFd fd, QtServerState& shared)
    : shared_(shared),
      options_(shared.options),
      session_(make_session(options_, shared.counters)),
      buffer_(std::make_unique_for_overwrite<char[]>(options_.read_buffer)),  // untouched until something is read
      effects_(options_.write_mode),
      next_(effects_.begin()),
      fd_(std::move(fd)),
      outbox_(options_.write_mode, options_.delivery_mode(), options_.outbox_limit) {}

bool QtConnection::start(QTcpSocket& socket, std::function<void()> done) {
  socket_ = &socket;
  done_ = std::move(done);
  if (socket.state() != QTcpSocket::ConnectedState) return false;
  socket.setReadBufferSize(static_cast<qint64>(options_.read_buffer));
  QObject::connect(&socket, &QTcpSocket::readyRead, &socket, [this] { serve(); });
  QObject::connect(&socket, &QTcpSocket::bytesWritten, &socket, [this] { on_written(); });
  QObject::connect(&socket, &QTcpSocket::disconnected, &socket, [this] { on_disconnected(); });
  bell_ = new Bell{&socket, [this] { send_outbox(); }};  // the socket's, and destroyed with it
  {
    const std::lock_guard lock{mutex_};
    open_ = true;
  }
  shared_.registry.join(shared_from_this());
  if (shared_.ending) stop_receiving();
  return true;
}

bool QtConnection::deliver(const SharedFrame& frame) {
  const std::lock_guard lock{mutex_};
  if (!open_) return true;
  const bool idle = outbox_.empty();
  if (!outbox_.push(frame)) {
    ring();
    if (!stuck_ || takes_more(fd_.get())) return false;
    shared_.counters.add_slow_closed();
    open_ = false;
    shutdown(fd_.get(), SHUT_RDWR);  // its thread hears of that as of any other end
  } else if (idle) {
    asleep_ = true;
  }
  return true;
}

void QtConnection::wake() {
  const std::lock_guard lock{mutex_};
  if (open_) ring();
}

/// With mutex_ held and open_ true: as long as it is, the bell is there, for its thread takes the lock before it lets
/// go of it.
void QtConnection::ring() {
  if (std::exchange(asleep_, false)) QCoreApplication::postEvent(bell_, new QEvent{QEvent::User});
}

void QtConnection::stop_receiving() {
  const std::lock_guard lock{mutex_};
  if (fd_) shutdown(fd_.get(), SHUT_RD);
}

/// Takes what has arrived, until there is no more or a reply has to wait for the peer to take it.
void QtConnection::serve() {
  while (carry_out() && receive()) {
  }
}

/// Carries out the effects from next_ on. False when a write is still under way (`on_all_written` comes back here) or
/// nothing more is to be read.
bool QtConnection::carry_out() {
  if (over_ || (unsent_ > 0 && !outbox_writes_)) return false;
  while (next_ != effects_.end()) {
    const Effect& effect = *next_++;
    switch (effect.kind) {
      case Effect::Kind::write:
        reply_ = effects_.bytes(effect);
        if (!write({&reply_, 1})) return false;
        break;
      case Effect::Kind::broadcast:
        broadcast(effect.frame);
        break;
      case Effect::Kind::wait:
        if (wait_unless_reset(fd_.get(), effect.remaining())) break;
        end();
        return false;
      case Effect::Kind::burn:
        burn_cpu(effect.duration);
        break;
      case Effect::Kind::close:
        wake_audience();
        closing_ = true;
        send_outbox();
        return false;
    }
  }
  wake_audience();
  return !closing_ && !over_;
}

/// Hands the next bytes to the session, or the end of the stream. False when there is neither.
bool QtConnection::receive() {
  const qint64 n =
      socket_->bytesAvailable() > 0 ? socket_->read(buffer_.get(), static_cast<qint64>(options_.read_buffer)) : 0;
  if (n <= 0 && !peer_ended_) return false;
  effects_.clear();
  if (n > 0) {
    session_->receive({buffer_.get(), static_cast<std::size_t>(n)}, effects_);
  } else {
    session_->end(effects_);
  }
  next_ = effects_.begin();
  return true;
}

/// Waits for members whose threads are behind: the machine has fewer cores than this server threads, and they are not
/// slow for that. Meanwhile this thread sends what waits for its own client, so that no two wait for each other.
void QtConnection::broadcast(SharedFrame frame) {
  const auto members = shared_.registry.snapshot();
  for (const auto& member : *members) {
    if (member.get() == this && options_.audience == Audience::others) continue;
    while (!member->deliver(frame) && !over_) {
      send_on();
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }
  audience_waits_ = true;
  if (options_.delivery_mode() == DeliveryMode::single) wake_audience();
}

/// Joined: once all that one read brought is in the outboxes, so that no thread wakes for the first of it alone.
void QtConnection::wake_audience() {
  if (!std::exchange(audience_waits_, false)) return;
  const auto members = shared_.registry.snapshot();
  for (const auto& member : *members) member->wake();
}

/// Does what the event loop would do, which has no turn meanwhile.
void QtConnection::send_on() {
  if (!outbox_writes_) return send_outbox();
  if (peer_ended_) return;
  flushing_ = true;
  socket_->flush();
  flushing_ = false;
  note_written();
  if (unsent_ == 0) on_all_written();
}

/// Sends what waits in the outbox, until nothing does or the peer takes no more; ends the connection after the last
/// frame when that is wanted.
void QtConnection::send_outbox() {
  while (!over_ && !outbox_writes_) {
    std::unique_lock lock{mutex_};
    const auto batch = outbox_.next();
    lock.unlock();
    if (batch.empty()) return closing_ ? end() : void();
    outbox_writes_ = true;
    if (!write(batch)) {
      lock.lock();
      stuck_ = unsent_ > 0;
      return;
    }
    lock.lock();
    outbox_.sent(size_of(batch));
    outbox_writes_ = false;
  }
}

/// Writes to the socket's buffer, and from there as much as the kernel takes now. True when that is all; else
/// on_written goes on.
bool QtConnection::write(std::span<const std::string_view> parts) {
  writing_ = parts;
  unsent_ = size_of(parts);
  if (peer_ended_) return write_blocking();
  flushing_ = true;
  for (const auto part : parts) socket_->write(part.data(), static_cast<qint64>(part.size()));
  socket_->flush();
  flushing_ = false;
  note_written();
  return unsent_ == 0;
}

/// Writes what is unsent, past the socket that is closed. False, and the connection is over, when the peer takes
/// nothing for a whole timeout or is gone.
bool QtConnection::write_blocking() {
  std::size_t skipped = size_of(writing_) - unsent_;
  for (auto part : writing_) {
    const std::size_t skip = std::min(skipped, part.size());
    skipped -= skip;
    part.remove_prefix(skip);
    const SendResult result = send_all(fd_.get(), part);
    if (result != SendResult::sent) {
      if (result == SendResult::timed_out) shared_.counters.add_slow_closed();
      end();
      return false;
    }
    shared_.counters.add_bytes_out(part.size());
    unsent_ -= part.size();
  }
  return true;
}

/// Counted by what is left, not by what bytesWritten says: Qt does not emit that for a write inside of its slots.
void QtConnection::note_written() {
  if (socket_->state() != QTcpSocket::ConnectedState) return;
  const auto left = static_cast<std::size_t>(socket_->bytesToWrite());
  shared_.counters.add_bytes_out(unsent_ - left);
  unsent_ = left;
}

void QtConnection::on_written() {
  if (flushing_) return;
  note_written();
  if (unsent_ == 0) on_all_written();
}

/// Goes on after a write that could not be done at once.
void QtConnection::on_all_written() {
  if (!std::exchange(outbox_writes_, false)) return serve();
  {
    const std::lock_guard lock{mutex_};
    outbox_.sent(size_of(writing_));
    stuck_ = peer_ended_;
  }
  send_outbox();
}

/// The socket has closed its descriptor. Where only the peer's stream is at its end, what was read before is served and
/// what is owed is sent by fd_; from now on this thread has nothing else to wait for, so writes may block.
void QtConnection::on_disconnected() {
  if (over_) return;                      // the socket is destroyed
  if (is_reset(fd_.get())) return end();  // or it was shut down from this side
  peer_ended_ = true;
  {
    const std::lock_guard lock{mutex_};
    stuck_ = true;  // no other thread is to wait for a write that blocks
  }
  make_blocking(fd_.get());
  set_send_timeout(fd_.get(), blocking_send_timeout);
  if (unsent_ > 0) {
    if (!write_blocking()) return;
    on_all_written();
  }
  serve();
}

/// Ends the connection: it leaves the registry, and the loop ends.
void QtConnection::end() {
  if (std::exchange(over_, true)) return;
  shared_.registry.leave(shared_from_this());
  end_stream(fd_.get());
  {
    const std::lock_guard lock{mutex_};
    open_ = false;
    fd_.reset();
  }
  done_();
}

}  // namespace netdyno::qt
