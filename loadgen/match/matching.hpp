#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/measure/deliveries.hpp"
#include "lib/measure/recorder.hpp"
#include "loadgen/codec/codec.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/plan/schedule.hpp"

namespace netdyno::load {

/// The fault of a foreign server where a message is given up, or its answer comes later than that.
inline constexpr std::string_view no_answer_in_time = "no answer in time";

/// By how much a chunk may come before it is due: timers of some runtimes round to the next millisecond.
inline constexpr Nanos earliest_chunk = 1'000'000;

/// Holds every reply against what was sent: whether it may be, whether it had come before, and which message it
/// completes. What is not completed is given up here. Owning thread only.
class Matching final : public ReplySink {
 public:
  /// The client id of messages that are not part of the load.
  static constexpr std::uint32_t probe_client = 0xffffffff;
  /// --start at-once: the first client id of messages that clients send before the load. They are no part of it,
  /// either.
  static constexpr std::uint32_t first_early_client = 0x80000000;

  Matching(const LoadPlan& plan, Clients& clients, Control& control, Codec& codec, Recorder& recorder);

  /// The load begins, or a slice of it; figures count within the window, and nothing is asked for after it.
  void begin(const Window& window, Schedule& schedule);
  /// The window ends earlier than it was to.
  void end_window(const Window& window) { window_ = window; }

  /// Attributes what is decoded from now on to this connection; its times end at `moment`: when it was read, or
  /// (`by_kernel`) when the kernel had taken it in.
  void begin_reading(std::uint32_t receiver, Nanos moment, bool by_kernel = false) {
    receiver_ = receiver;
    now_ = moment;
    by_kernel_ = by_kernel;
  }
  /// How long it had been there; `never` where that is not known.
  void set_lag(Nanos receive_lag) { receive_lag_ = receive_lag; }

  void on_reply(const Stamp& stamp, std::size_t size) override;
  void on_chunk(const Stamp& stamp, std::uint64_t number) override;
  void on_corrupt() override;
  void on_plain(const PlainReply& reply) override;
  void on_failed(const Stamp& stamp, std::string_view why) override;
  void on_last() override { clients_[receiver_].closing = plan_.reconnects; }
  void on_broken(std::string_view why) override { why_broken_ = why; }

  /// How the connection of a foreign server came to its end, and with it that of what it had no reply to.
  enum class End {
    announced,  // by the server, which does not carry out what came after its last reply (RFC 9112, 9.6)
    closed,
    reset,
    given_up  // by this program, as a reply took too long or could not be read
  };
  /// Foreign servers: the connection is at its end. The oldest message of a connection that brought nothing is given
  /// up, and says `why`: so that no server holds up its messages for ever. What else was sent is sent again on the next
  /// connection, if that may be; else it is given up, too. Returns how many messages were, with the oldest.
  std::uint64_t take_back(std::uint32_t number, std::string_view why, End end, Nanos now);
  /// Why the stream that was read last cannot be read any further.
  const std::string& why_broken() const { return why_broken_; }

  /// Gives up what was meant before `deadline`; returns how many messages.
  std::uint64_t give_up(Connection& connection, Nanos deadline, Nanos now);
  /// The same of a connection that does not stand, where nothing is on its way: they are without an answer.
  std::uint64_t give_up_unsent(Connection& connection, Nanos deadline);
  /// The connection is gone, and what it waited for will not come.
  void let_go(std::uint32_t number, Nanos now);
  /// Chat: from now on what is delivered is taken off what all threads owe; this one sent so many messages.
  void begin_drain(std::uint64_t intended);
  bool draining() const { return draining_; }
  /// When all is answered or given up: what the window brought each connection goes into the figures.
  void end() const;

  /// Deliveries that each message of the load brings.
  std::uint64_t recipients() const;

 private:
  bool is_chat() const { return plan_.workload == Workload::chat; }
  void note_joined(std::size_t size);
  void receive_early(const Stamp& stamp, std::size_t size);
  bool is_plausible(const Stamp& stamp) const;
  bool is_unwanted_copy(const Stamp& stamp) const;
  bool does_complete(const Stamp& stamp) const;
  void complete(std::uint32_t sender, std::uint64_t sequence);
  void choose_timers();
  void fail_oldest(std::uint32_t number, std::string_view why) { fail(number, clients_[number].flight.oldest(), why); }
  void fail(std::uint32_t number, std::uint64_t sequence, std::string_view why);
  std::uint64_t give_up_sent(std::uint32_t number, End end);

  const LoadPlan& plan_;
  Clients& clients_;
  Control& control_;
  Codec& codec_;
  Schedule* schedule_ = nullptr;
  Recorder& recorder_;
  Deliveries deliveries_;
  std::vector<std::uint32_t> timers_;  // chat to others: the client whose copy completes a sender's message
  Window window_;
  Nanos now_ = 0;
  bool by_kernel_ = false;
  Nanos receive_lag_ = never;
  std::uint32_t receiver_ = 0;
  bool messages_;     // what comes is whole messages, not a stream
  bool sizes_known_;  // of replies, before they come
  bool draining_ = false;
  std::string why_broken_;
};

}  // namespace netdyno::load
