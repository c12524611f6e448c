#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "lib/measure/recorder.hpp"
#include "loadgen/connect/message_writer.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Connects the clients of a thread before the load, and waits for the other threads; reconnects clients in the load
/// (--requests-per-connection). Owning thread only.
class Connecting {
 public:
  Connecting(const LoadPlan& plan, Clients& clients, Control& control, Transport& transport, MessageWriter& writer,
             Recorder& recorder)
      : plan_(plan), clients_(clients), control_(control), transport_(transport), writer_(writer), recorder_(recorder) {
    if (plan.speaks_at_once) clients.early.resize(clients.size());
  }

  /// Begins every connect when it is due, until all have come to an end. `events` hands `note_connected` and
  /// `note_failed` what they are about.
  void connect_all(TransportEvents& events);
  /// Tells the others, helps to find out whether the server knows every client (chat), and waits for the common start.
  void await_start(TransportEvents& events);

  /// Closes a connection on which all requests are answered. The client reconnects at once if it has a message that
  /// waits, else by reconnect().
  void leave(std::uint32_t number, TransportEvents& events);
  /// Reconnects a client that has left. Its messages wait meanwhile.
  void reconnect(std::uint32_t number, TransportEvents& events);
  /// Whether it has been at that for too long.
  bool has_waited_too_long(const Connection& connection, Nanos now) const {
    return connection.state == Connection::State::returning && connection.connect_began + plan_.connect_timeout <= now;
  }

  /// When the next of those that are away may try again.
  Nanos next_try() const { return away_.empty() ? never : std::max(away_.front().again_at, next_try_); }
  /// Those that may by now connect again; a few, so that ten thousand do not delay what is due meanwhile.
  void try_again(Nanos now, TransportEvents& events);

  void note_connected(std::uint32_t number);
  void note_failed(std::uint32_t number, ConnectFailure failure, int error);

 private:
  struct Away {
    std::uint32_t number;
    Nanos again_at;
  };

  Nanos find_due(std::uint32_t number) const;
  void expire(std::uint32_t begun);
  void send_probes(Nanos now);
  bool speaks_early() const { return plan_.speaks_at_once && !control_.is_joining() && !control_.has_start(); }
  void speak_early(std::uint32_t number);
  void answer_early_speech();

  const LoadPlan& plan_;
  Clients& clients_;
  Control& control_;
  Transport& transport_;
  MessageWriter& writer_;
  Recorder& recorder_;
  Nanos start_ = 0;
  std::uint32_t settled_ = 0;  // connects that have come to an end
  std::uint32_t oldest_ = 0;   // those before it have come to an end
  Nanos probe_at_ = 0;
  Nanos probe_again_ = 0;
  std::uint64_t probes_ = 0;
  std::deque<Away> away_;  // in the order in which they may try again
  Nanos next_try_ = 0;     // none does before
};

}  // namespace netdyno::load
