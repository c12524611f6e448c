#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "lib/measure/clock.hpp"
#include "lib/net/descriptor.hpp"

namespace netdyno::load {

/// epoll(7) over the sockets of a transport, to the nanosecond, and a way to end its wait. Owning thread only, but for
/// wake. Ends the program where the kernel lacks what it needs.
class SocketPoller {
 public:
  SocketPoller();

  /// `what` are epoll events, `connection` comes back with each of them. Closing the descriptor removes it.
  void add(int fd, std::uint32_t what, std::uint32_t connection) { control(EPOLL_CTL_ADD, fd, what, connection); }
  void modify(int fd, std::uint32_t what, std::uint32_t connection) { control(EPOLL_CTL_MOD, fd, what, connection); }

  /// A descriptor that stays open.
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }

  /// Waits for the first event until `until` at most (a moment that has passed: does not wait); the events are valid
  /// until the next call.
  std::span<const epoll_event> wait(Nanos until);
  /// Whether an event was no connection's but a wake, which it then takes back.
  bool was_wake(const epoll_event& event);
  /// Any thread.
  void wake();

 private:
  static constexpr std::uint64_t wake_mark = ~0ULL;

  void control(int operation, int fd, std::uint32_t what, std::uint64_t mark);

  UniqueFd epoll_;
  UniqueFd wake_;
  std::array<epoll_event, 256> ready_{};
};

}  // namespace netdyno::load
