#pragma once

namespace netdyno {

/// The client for which the only thread of a process blocks in recv(2), send(2) or poll(2): a signal handler is all
/// that can reach it there. While this lives, SIGTERM and SIGINT, which termination_signals() had blocked, end the
/// client's stream at what has arrived. When the grace is over too, its connection ends, and with it what waits for the
/// client. What a signal interrupts goes on. Afterwards a signal that came is pending once more, for the descriptor of
/// termination_signals(). One at a time in a process.
class BlockingClient {
 public:
  explicit BlockingClient(int fd);
  ~BlockingClient();
  BlockingClient(const BlockingClient&) = delete;
  BlockingClient& operator=(const BlockingClient&) = delete;

  /// The grace of the client that there is now, or was last.
  static bool grace_over();
};

}  // namespace netdyno
