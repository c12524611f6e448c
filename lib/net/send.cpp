#include "lib/net/send.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace netdyno {
namespace {

int at_broken_pipe = MSG_NOSIGNAL;  // set before any thread starts

/// One system call.
ssize_t send_some(int fd, std::span<iovec> parts, int flags) {
  if (parts.size() == 1) return send(fd, parts[0].iov_base, parts[0].iov_len, flags);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sendmsg(fd, &message, flags);
}

std::span<iovec> remove_prefix(std::span<iovec> parts, std::size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (bytes > 0) parts.front() = {static_cast<char*>(parts.front().iov_base) + bytes, parts.front().iov_len - bytes};
  return parts;
}

}  // namespace

void set_nodelay(int fd, bool on) {
  const int value = on ? 1 : 0;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

void set_send_timeout(int fd, std::chrono::seconds timeout) {
  const timeval value{timeout.count(), 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

void end_at_broken_pipes() {
  std::signal(SIGPIPE, SIG_DFL);
  at_broken_pipe = 0;
}

SendResult send_all(int fd, std::string_view bytes, Patience patience) {
  if (bytes.empty()) return SendResult::sent;
  iovec whole = part_of(bytes);
  return send_all(fd, {&whole, 1}, patience);
}

SendResult send_all(int fd, std::span<iovec> parts, Patience patience) {
  int flags = at_broken_pipe | (patience == Patience::none ? MSG_DONTWAIT : 0);
  while (!parts.empty()) {
    const ssize_t sent = send_some(fd, parts, flags);
    if (sent > 0) {
      parts = remove_prefix(parts, static_cast<std::size_t>(sent));
      // Only its timeout cuts a blocking send short (send(2), socket(7)), so the time is up.
      if (patience == Patience::one_timeout) flags |= MSG_DONTWAIT;
    } else if (sent < 0 && errno == EAGAIN) {
      return SendResult::timed_out;
    } else if (sent < 0 && errno != EINTR) {
      return SendResult::peer_gone;
    }
  }
  return SendResult::sent;
}

bool takes_more(int fd) {
  pollfd watched{fd, POLLOUT, 0};
  return poll(&watched, 1, 0) == 1 && watched.revents == POLLOUT;
}

bool is_reset(int fd) { return !wait_unless_reset(fd, std::chrono::nanoseconds{0}); }

bool wait_unless_reset(int fd, std::chrono::nanoseconds duration) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + duration;
  pollfd watched{fd, 0, 0};  // POLLHUP and POLLERR are reported without being requested
  while (true) {
    const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), {});
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int found = ppoll(&watched, 1, &timeout, nullptr);
    if (found > 0) return false;
    if (found == 0 || errno != EINTR) return true;
  }
}

void end_stream(int fd) {
  std::array<char, 64 << 10> scrap;
  constexpr int most_reads = 256;  // a peer that sends on and on is reset after all
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < most_reads && recv(fd, scrap.data(), scrap.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

}  // namespace netdyno
