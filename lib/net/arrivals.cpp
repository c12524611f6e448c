#include "lib/net/arrivals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace netdyno {
namespace {

std::int64_t now(clockid_t clock) {
  timespec moment{};
  clock_gettime(clock, &moment);
  return moment.tv_sec * 1'000'000'000 + moment.tv_nsec;
}

}  // namespace

void keep_arrival_times(int fd, bool on) {
  const int value = on ? 1 : 0;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &value, sizeof value);
}

KernelStamp stamp_of(msghdr& message) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPNS) return {};
  timespec moment{};
  std::memcpy(&moment, CMSG_DATA(header), sizeof moment);
  return moment.tv_sec * 1'000'000'000 + moment.tv_nsec;
}

/// Uses syscall(2), as this thread is never cancelled: loadgen/transport/tcp.cpp says why.
ssize_t receive_stamped(int fd, std::span<char> into, int flags, KernelStamp& arrived) {
  iovec piece{into.data(), into.size()};
  StampRoom room;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes.data();
  message.msg_controllen = room.bytes.size();
  const ssize_t n = syscall(SYS_recvmsg, fd, &message, flags);
  if (n > 0) arrived = stamp_of(message);
  return n;
}

WallClock::Reading WallClock::read() {
  Reading reading{};
  reading.before = now(CLOCK_MONOTONIC);
  reading.wall = now(CLOCK_REALTIME);
  reading.after = now(CLOCK_MONOTONIC);
  return reading;
}

/// The best of a few readings: something else may run between the clocks of one.
WallClock::Reading WallClock::tightest() {
  Reading best = read();
  for (int i = 0; i < 10; ++i) {
    const Reading next = read();
    if (next.after - next.before < best.after - best.before) best = next;
  }
  return best;
}

WallClock::WallClock(const Reading& first)
    : offset_(first.wall - (first.before + (first.after - first.before) / 2)),
      tolerance_((first.after - first.before) / 2 + 1'000) {}

std::optional<std::int64_t> WallClock::monotonic(std::int64_t wall, const Reading& latest) {
  const bool as_before =
      latest.wall - latest.after <= offset_ + tolerance_ && latest.wall - latest.before >= offset_ - tolerance_;
  was_set_ = was_set_ || !as_before;
  if (was_set_) return std::nullopt;
  return wall - offset_;
}

}  // namespace netdyno
