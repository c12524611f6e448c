#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

namespace netdyno {

/// TCP_NODELAY as asked. An error (the peer is gone already) is left to the next read.
void set_nodelay(int fd, bool on);

/// How long a blocking send may be held up by a reader that does not read, before that reader is closed.
inline constexpr std::chrono::seconds blocking_send_timeout{2};

/// SO_SNDTIMEO (socket(7)): a blocking send fails with EAGAIN after `timeout`.
void set_send_timeout(int fd, std::chrono::seconds timeout);

/// How long send_all waits for a reader that takes its bytes slowly.
enum class Patience {
  while_it_reads,  // as long as each send timeout sees some taken: only the reader's own thread waits
  one_timeout,     // one send timeout in all, however little at a time is taken: others wait meanwhile
  none             // not at all
};

/// A buffer for writev(2) and sendmsg(2), which only read it.
inline iovec part_of(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

/// Bytes in all parts.
inline std::size_t size_of(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

/// From now on a send to a peer that has gone ends the program by SIGPIPE. Before any thread starts.
void end_at_broken_pipes();

/// Sends all of `bytes` on a blocking socket, without SIGPIPE (but for end_at_broken_pipes).
enum class SendResult { sent, peer_gone, timed_out };
SendResult send_all(int fd, std::string_view bytes, Patience patience = Patience::while_it_reads);
/// The same for buffers, none of them empty and at most IOV_MAX, that leave in one system call if the socket takes all.
/// `parts` is changed on the way.
SendResult send_all(int fd, std::span<iovec> parts, Patience patience = Patience::while_it_reads);

/// The kernel takes bytes for the peer now: a peer that reads leaves room for more.
bool takes_more(int fd);

/// The connection is over in both directions, though this side has not ended its own: the peer has reset it.
bool is_reset(int fd);

/// Blocks for `duration`, as a sleep does, but returns false at once when the peer resets the connection. The kernel
/// may add a thousandth (poll(2)).
bool wait_unless_reset(int fd, std::chrono::nanoseconds duration);

/// Call before closing a socket: ends the sending side, and throws away what has arrived. A close with unread input
/// resets the connection (RFC 1122, 4.2.2.13), and a peer that is reset may lose the replies under way to it (RFC
/// 9112, 9.6).
void end_stream(int fd);

}  // namespace netdyno
