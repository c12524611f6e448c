#include "connection.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace netdyno {

Connection::Connection(UniqueFd fd, Loop& loop, const ServerOptions& options, Counters& counters)
    : effects(options.write_mode),
      fd_(std::move(fd)),
      loop_(loop),
      options_(options),
      counters_(counters),
      session_(make_session(options, counters)) {}

void Connection::on_events(std::uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) ended_ = true;
  if ((events & (EPOLLIN | EPOLLERR)) != 0 || ended_) readable_ = true;
  if (readable_) wake(reader_);
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    writable_ = true;
    flush();
  }
}

ssize_t Connection::read(std::span<char> buffer) {
  const ssize_t n = recv(fd(), buffer.data(), buffer.size(), 0);
  // A short read emptied the socket (epoll(7), question 9), so the next edge tells; but after the end there is none.
  if (n < 0) readable_ = errno != EAGAIN;
  if (n >= 0 && static_cast<std::size_t>(n) < buffer.size()) readable_ = n > 0 && ended_;
  return n;
}

void Connection::send(std::string_view bytes) {
  queue({bytes});
  flush();
}

bool Connection::post(const SharedFrame& frame) {
  if (!member || broken_) return false;
  for_each_part(*frame, options_.write_mode, [&](std::string_view bytes) { queue({bytes, frame}); });
  if (outbox_bytes_ > options_.outbox_limit) flush();
  if (outbox_bytes_ > options_.outbox_limit) {
    counters_.add_slow_closed();
    give_up();
  }
  return writable_ && !broken_ && !std::exchange(flush_due_, true);
}

void Connection::queue(Part part) {
  if (broken_) return;
  outbox_bytes_ += part.bytes.size();
  outbox_.push(std::move(part));
}

void Connection::flush() {
  flush_due_ = false;
  while (writable_ && !outbox_.empty()) {
    const ssize_t n = write_some();
    if (n >= 0) {
      took(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      writable_ = false;  // an edge follows, as the kernel now knows that somebody wants the space
    } else if (errno != EINTR) {
      return give_up();
    }
  }
  if (outbox_.empty()) wake(drainer_);
}

/// One system call: all that is queued (gathered), or the part at the front (split).
ssize_t Connection::write_some() {
  std::array<iovec, 64> parts;
  const std::size_t most = options_.write_mode == WriteMode::split ? 1 : parts.size();
  const std::size_t count = std::min(most, outbox_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes = outbox_[i].bytes;
    parts[i] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return writev(fd(), parts.data(), static_cast<int>(count));
}

void Connection::took(std::size_t bytes) {
  counters_.add_bytes_out(bytes);
  outbox_bytes_ -= bytes;
  while (bytes > 0 && bytes >= outbox_[0].bytes.size()) bytes -= outbox_.pop().bytes.size();
  if (bytes > 0) outbox_[0].bytes.remove_prefix(bytes);
}

void Connection::give_up() {
  broken_ = true;
  outbox_.clear();
  outbox_bytes_ = 0;
  wake(reader_);
  wake(drainer_);
}

}  // namespace netdyno
