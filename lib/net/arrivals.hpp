#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>

namespace netdyno {

/// The moment at which the kernel had what a read brought: nanoseconds of CLOCK_REALTIME (SO_TIMESTAMPNS, socket(7)).
/// Nothing where the read did not ask, or the kernel does not say.
using KernelStamp = std::optional<std::int64_t>;

/// From now on the kernel can be asked of this socket, or no more. Where it cannot, there are no stamps.
void keep_arrival_times(int fd, bool on = true);

/// Room for one stamp behind a msghdr.
struct StampRoom {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(timespec))> bytes{};
};

/// The stamp that a read into such room brought. Of a stream: that of the last bytes that it took.
KernelStamp stamp_of(msghdr& message);

/// Like recv(2), and says when the last byte arrived. Takes a little longer.
ssize_t receive_stamped(int fd, std::span<char> into, int flags, KernelStamp& arrived);

/// Converts moments of CLOCK_REALTIME to CLOCK_MONOTONIC, both in nanoseconds. Linux steers the two alike, so that they
/// differ by a constant until the clock is set (also by a leap second). From then on a stamp may come from before or
/// after that step, and nothing is converted any more. Owning thread only.
class WallClock {
 public:
  /// One reading of CLOCK_REALTIME between two of CLOCK_MONOTONIC.
  struct Reading {
    std::int64_t before;
    std::int64_t wall;
    std::int64_t after;
  };
  static Reading read();

  /// `first`: when no stamp has been made that will be asked for.
  explicit WallClock(const Reading& first = tightest());

  /// `latest` is a reading made after the stamp: it shows whether the clock was set meanwhile.
  std::optional<std::int64_t> monotonic(std::int64_t wall, const Reading& latest);

 private:
  static Reading tightest();

  std::int64_t offset_;     // of CLOCK_REALTIME
  std::int64_t tolerance_;  // to which it is known
  bool was_set_ = false;
};

}  // namespace netdyno
