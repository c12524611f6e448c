#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/measure/recorder.hpp"
#include "loadgen/codec/codec.hpp"
#include "loadgen/connect/loop_clock.hpp"
#include "loadgen/match/connection.hpp"
#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Gives the waiting messages of a connection to its transport, in order, and notes when each went out. What does not
/// fit waits as a number in the connection's Flight; only the rest of a message that was taken in part is kept as
/// bytes. Owning thread only.
class MessageWriter {
 public:
  MessageWriter(const LoadPlan& plan, const ThreadShare& share, Transport& transport, Codec& codec, LoopClock& clock,
                Recorder& recorder)
      : split_(plan.write_mode == WriteMode::split),
        messages_(carries_messages(plan.url)),
        share_(share),
        transport_(transport),
        codec_(codec),
        clock_(clock),
        recorder_(recorder) {}

  /// Replies that each message brings (1 by default).
  void set_recipients(std::uint64_t recipients) { recipients_ = recipients; }

  /// Sends a message that is not part of the load and stands in no figure but bytes.sent. False: the connection still
  /// has an earlier one to send, and this one is not sent.
  bool probe(std::uint32_t number, Connection& connection, const Stamp& stamp);

  /// Sends what waits on an open connection, as far as it goes. Messages that are due together leave in one write.
  void push(std::uint32_t number, Connection& connection) { push(number, connection, false); }

  /// The connection can take more.
  void resume(std::uint32_t number, Connection& connection);

 private:
  void push(std::uint32_t number, Connection& connection, bool was_blocked);
  /// Encodes messages that can leave in one write.
  void gather(std::uint32_t number, const Connection& connection);
  std::size_t write(std::uint32_t number);
  /// Notes the messages whose first byte was taken; returns the end of the last of them in the buffer.
  std::size_t note_begun(std::uint32_t number, Connection& connection, std::size_t taken, Nanos sent_at,
                         bool was_blocked);

  bool split_;
  bool messages_;
  ThreadShare share_;
  Transport& transport_;
  Codec& codec_;
  LoopClock& clock_;
  Recorder& recorder_;
  std::uint64_t recipients_ = 1;
  std::string buffer_;
  std::vector<std::size_t> ends_;  // of the messages in it
  std::size_t header_ = 0;         // size of the first one's header
};

}  // namespace netdyno::load
