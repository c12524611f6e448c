#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/cli/url.hpp"
#include "lib/server/options.hpp"

namespace netdyno {

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Ends the program with `message` and exit 1: set-up cannot go on. Put the way out into the message.
[[noreturn]] void die(const std::string& message);

/// How long a blocking send may be held up by a reader that does not read, before that reader is closed.
inline constexpr std::chrono::seconds blocking_send_timeout{2};

/// How long a server that was told to end may still work on what is in flight.
inline constexpr std::chrono::seconds shutdown_grace{2};

/// A socket of `type` (socket(2)), bound where `where` says; `prepare` sets its options before. Dies with a hint when
/// that cannot be had.
UniqueFd bind_socket(const Url& where, int type, const std::function<void(int fd)>& prepare);

/// A listening TCP socket (SO_REUSEADDR, the asked backlog). Dies with a hint when that cannot be had.
UniqueFd listen_tcp(const ServerOptions& options, bool nonblocking);

/// Where a bound socket really is: transport://host:port with the port the kernel chose.
Url local_endpoint(int fd, const std::string& transport = "tcp");

/// TCP_NODELAY as asked. An error (the peer is gone already) is left to the next read.
void set_nodelay(int fd, bool on);

/// SO_SNDTIMEO (socket(7)): a blocking send fails with EAGAIN after `timeout`.
void set_send_timeout(int fd, std::chrono::seconds timeout);

/// accept(2) and what its errno means for the accept loop: errno is sorted here, once.
enum class AcceptStatus {
  accepted,
  try_again,     // nothing there now, a signal came, or the peer left before it was accepted
  exhausted,     // no descriptors or memory: pause, the queue is still full
  not_listening  // the listener was shut down
};
struct Accepted {
  AcceptStatus status;
  UniqueFd fd;
};
Accepted accept_one(int listener, bool nonblocking);

/// How long send_all waits for a reader that takes its bytes slowly.
enum class Patience {
  while_it_reads,  // as long as each send timeout sees some taken: nobody but the reader's own thread waits
  one_timeout,     // one send timeout in all, however little at a time is taken: others wait meanwhile
  none             // not at all
};

/// Sends all of `bytes` on a blocking socket, without SIGPIPE.
enum class SendResult { sent, peer_gone, timed_out };
SendResult send_all(int fd, std::string_view bytes, Patience patience = Patience::while_it_reads);

/// Call before closing a socket: ends the sending side, and throws away what has arrived. A close with unread input
/// resets the connection (RFC 1122, 4.2.2.13), and a peer that is reset may lose the replies under way to it (RFC
/// 9112, 9.6).
void end_stream(int fd);

/// Blocks SIGTERM and SIGINT in this thread and all that it starts, ignores SIGPIPE, and returns a signalfd(2) that
/// becomes readable when the program is told to end. Call it before any thread starts.
UniqueFd termination_signals();

/// Prints the one line that says the server accepts: {"ready":true,"endpoint":…,"pid":…}.
void announce_ready(const Url& endpoint);

struct Totals;
/// Prints the one line of totals that ends a server's life.
void print_totals(const Totals& totals);
/// The same with one more entry, whose value `json` is the text of.
void print_totals(const Totals& totals, const std::string& name, const std::string& json);
/// The same of a server whose transport has no connections.
void print_totals_with_peers(const Totals& totals);
void print_totals_with_peers(const Totals& totals, const std::string& name, const std::string& json);

}  // namespace netdyno
