#include "loadgen/transport/socket_poller.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/cli/die.hpp"

namespace netdyno::load {

SocketPoller::SocketPoller() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) die(fmt::format("epoll: {}", std::strerror(errno)));
  control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, wake_mark);
}

/// epoll_pwait2(2) (Linux 5.11, glibc 2.35) takes nanoseconds; epoll_wait rounds to milliseconds, which is the error
/// that makes other generators late.
std::span<const epoll_event> SocketPoller::wait(Nanos until) {
  const Nanos left = until == never ? 0 : until - now_ns();
  const timespec timeout{left / one_second, left % one_second};
  constexpr timespec at_once{0, 0};
  const timespec* limit = until == never ? nullptr : left > 0 ? &timeout : &at_once;
  const int count = epoll_pwait2(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), limit, nullptr);
  if (count < 0 && errno != EINTR)
    die(fmt::format("epoll_pwait2: {}{}", std::strerror(errno), errno == ENOSYS ? " (needs Linux 5.11)" : ""));
  return {ready_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

bool SocketPoller::was_wake(const epoll_event& event) {
  if (event.data.u64 != wake_mark) return false;
  std::uint64_t unused = 0;
  [[maybe_unused]] const ssize_t n = read(wake_.get(), &unused, sizeof unused);
  return true;
}

void SocketPoller::wake() {
  const std::uint64_t increment = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &increment, sizeof increment);
}

void SocketPoller::control(int operation, int fd, std::uint32_t what, std::uint64_t mark) {
  epoll_event event{};
  event.events = what;
  event.data.u64 = mark;
  if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0) die(fmt::format("epoll_ctl: {}", std::strerror(errno)));
}

}  // namespace netdyno::load
