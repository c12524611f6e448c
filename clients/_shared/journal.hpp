#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "clients/_shared/plan.hpp"
#include "clients/_shared/stages.hpp"
#include "lib/measure/deliveries.hpp"
#include "lib/measure/recorder.hpp"
#include "loadgen/codec/codec.hpp"

namespace netdyno::client {

/// Where an attempt of an instance can fail, in the order of its stages.
enum class Failure : std::size_t {
  resolve_failed,
  connect_refused,
  connect_timed_out,
  connect_other,
  response_timeout,
  closed,
  reset,
  protocol
};

inline constexpr std::array<const char*, 8> failure_names{"resolve_failed", "connect_refused",  "connect_timed_out",
                                                          "connect_other",  "response_timeout", "closed",
                                                          "reset",          "protocol"};

/// How an error of the client library counts.
Failure failure_of(const Error& error);

/// The outcome of the requests of all instances. It belongs to the thread that carries the requests out, but for what
/// says otherwise.
class Journal {
 public:
  explicit Journal(const ClientPlan& plan);

  /// The first attempt of every instance has come to an end.
  bool settled() const { return settled_ == instances_; }
  /// The load starts at a moment: warm-up, then the window.
  void begin(Nanos start);
  bool begun() const { return window_.end != load::never; }
  /// Stops all sending: the window is over, or shutdown was requested.
  void end();
  bool may_send(Nanos now) const { return now >= start_ && now < end_; }

  /// Once, when no request is under way any more: completes the figures. It takes a while after a long window that was
  /// cut short, for the time series gets all its slots.
  void finish();

  const load::Window& window() const { return window_; }
  const load::Figures& figures() const { return recorder_.figures; }
  std::uint64_t failures(Failure failure) const { return failures_[static_cast<std::size_t>(failure)]; }
  std::uint64_t recovered() const { return recovered_; }
  bool reached_the_end() const { return end_ >= window_.end; }

  /// Any thread: answered within the window so far, and its time series.
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  /// Any thread: of the requests that were due in the window, those answered so far.
  std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  const load::Timeline& timeline() const { return timeline_; }

 private:
  friend class Caller;

  void count_first_attempt(Failure failure, int error);

  const ClientPlan& plan_;
  std::uint32_t instances_;
  std::unique_ptr<load::Codec> codec_;
  load::Timeline timeline_;
  load::Recorder recorder_;
  load::Deliveries deliveries_;
  load::Window window_;
  Nanos start_ = load::never;
  Nanos end_ = load::never;
  std::uint32_t settled_ = 0;
  std::array<std::uint64_t, failure_names.size()> failures_{};
  std::uint64_t recovered_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> answered_{0};
};

/// One instance as the journal sees it: its requests, one at a time, and the verification of their answers. On the
/// journal's thread.
class Caller final : private load::ReplySink {
 public:
  Caller(Journal& journal, std::uint32_t id) : journal_(journal), id_(id) {}

  /// The name is resolved, and a connection is being made.
  void connecting() { connect_began_ = load::now_ns(); }
  /// The connection stands.
  void connected();
  /// The attempt has failed, and its connection is dropped; a request under way gets no answer. `error` is the errno of
  /// a connect, 0 where the framework does not tell it.
  void failed(Failure failure, int error = 0);

  /// Another request may be sent: the load has begun and is not over.
  bool may_send() const { return journal_.may_send(load::now_ns()); }

  /// The body of the next request, which is valid until the one after it. It counts as sent from here on: what follows
  /// is the framework's work.
  std::string_view next();
  /// A request is under way.
  bool waiting() const { return waiting_; }

  /// Takes the next bytes of the stream, in any slicing.
  Received receive(std::string_view bytes);

 private:
  void on_reply(const Stamp& stamp, std::size_t size) override;
  void on_corrupt() override;
  void settle();

  Journal& journal_;
  std::uint32_t id_;
  std::unique_ptr<load::Decoder> decoder_;  // of this connection's stream
  std::string buffer_;
  std::uint64_t next_ = 0;  // sequence number, over all connections of the instance
  Nanos connect_began_ = 0;
  Nanos intended_ = 0;  // when the next request could be sent
  Nanos sent_ = 0;
  Nanos now_ = 0;
  bool waiting_ = false;
  bool first_attempt_ = true;
  bool failed_before_ = false;
  Received verdict_ = Received::incomplete;
};

}  // namespace netdyno::client
