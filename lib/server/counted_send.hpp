#pragma once

#include <span>

#include "lib/net/send.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// Sends all parts on a blocking socket, and counts what that made of them. Any thread. False when the client cannot be
/// sent to any more.
inline bool send_counted(int fd, std::span<iovec> parts, Patience patience, Counters& counters) {
  const std::size_t size = size_of(parts);
  const SendResult result = send_all(fd, parts, patience);
  if (result == SendResult::sent) {
    counters.add_bytes_out(size);
    return true;
  }
  if (result == SendResult::timed_out) counters.add_slow_closed();
  return false;
}

inline bool send_counted(int fd, std::string_view bytes, Patience patience, Counters& counters) {
  iovec part = part_of(bytes);
  return send_counted(fd, {&part, 1}, patience, counters);
}

}  // namespace netdyno
