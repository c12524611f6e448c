#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/histogram.hpp"
#include "loadgen/clock.hpp"
#include "loadgen/timeline.hpp"

namespace netdyno::load {

/// The part of a run that counts: from `start` to one before `end`.
struct Window {
  Nanos start = never;
  Nanos end = never;
  bool holds(Nanos moment) const { return moment >= start && moment < end; }
};

struct ConnectCounts {
  std::uint64_t established = 0;
  std::uint64_t refused = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t reset = 0;
  std::uint64_t other = 0;
  std::uint64_t attempted() const { return established + refused + timed_out + reset + other; }
};

/// Over the whole life. `received` counts every verified reply, a repeated one too; so what is lost is
/// expected - (received - duplicated).
struct MessageCounts {
  std::uint64_t sent = 0;
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupt = 0;
};

struct ByteCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t expected = 0;
};

struct ErrorCounts {
  std::uint64_t timeout = 0;           // messages
  std::uint64_t closed_by_server = 0;  // connections
  std::uint64_t reset = 0;             // connections
  std::uint64_t protocol = 0;          // connections
};

/// Everything that a thread counts and times; several are merged into one. Owning thread only.
struct Figures {
  Histogram response;
  Histogram service;
  Histogram own_lag;      // lateness of messages that found room in their socket: the generator's own
  Histogram blocked_lag;  // lateness of those that had to wait for the server to read
  Histogram connect;
  ConnectCounts connections;
  int other_connect_error = 0;  // an errno behind connections.other
  MessageCounts messages;
  ByteCounts bytes;
  ErrorCounts errors;
  std::uint64_t scheduled_in_window = 0;
  std::uint64_t sent_in_window = 0;        // meant for the window, and sent
  std::uint64_t completed_in_window = 0;   // answered within the window
  std::uint64_t completed_service_ns = 0;  // service times of those, added up
  std::uint64_t in_flight_ns = 0;          // sent and unanswered messages, integrated over the window

  void add(const Figures& other);
};

/// Puts moments into figures. Owning thread only.
class Recorder {
 public:
  explicit Recorder(Timeline& timeline) : timeline_(timeline) {}

  Figures figures;

  /// Once, when the window is known.
  void set_window(const Window& window);

  void scheduled(Nanos intended) { figures.scheduled_in_window += window_.holds(intended); }

  /// `blocked`: the message had to wait until its connection could take it.
  void sent(Nanos intended, Nanos at, bool blocked) {
    count_in_flight(at, 1);
    ++figures.messages.sent;
    if (!window_.holds(intended)) return;
    ++figures.sent_in_window;
    (blocked ? figures.blocked_lag : figures.own_lag).record(at - intended);
  }

  void answered(Nanos intended, Nanos sent_at, Nanos at) {
    count_in_flight(at, -1);
    if (window_.holds(intended)) {
      figures.response.record(at - intended);
      figures.service.record(at - sent_at);
    }
    if (!window_.holds(at)) return;
    roll(at);
    ++figures.completed_in_window;
    figures.completed_service_ns += static_cast<std::uint64_t>(at - sent_at);
    slot_responses_.record(at - intended);
  }

  /// Messages that nobody will answer any more.
  void abandoned(std::uint64_t messages, Nanos at) { count_in_flight(at, -static_cast<std::int64_t>(messages)); }

  /// One error of any kind, for the time series.
  void error(Nanos at, std::uint64_t count = 1) {
    if (!window_.holds(at)) return;
    roll(at);
    slot_errors_ += count;
  }

  /// Delivers the slots of the time series that are over.
  void roll(Nanos now) {
    while (now >= slot_end_) deliver_slot();
  }

  /// Completes the time series and the integral. Once, at the end of the thread's work.
  void finish();

 private:
  void deliver_slot();

  void count_in_flight(Nanos at, std::int64_t change) {
    const Nanos from = std::clamp(last_change_, window_.start, window_.end);
    const Nanos to = std::clamp(at, window_.start, window_.end);
    if (to > from)
      figures.in_flight_ns += static_cast<std::uint64_t>(to - from) * static_cast<std::uint64_t>(in_flight_);
    last_change_ = std::max(at, last_change_);
    in_flight_ += change;
  }

  Timeline& timeline_;
  Window window_;
  Histogram slot_responses_;
  std::uint64_t slot_errors_ = 0;
  std::size_t slot_ = 0;
  Nanos slot_end_ = never;
  Nanos last_change_ = 0;
  std::int64_t in_flight_ = 0;
};

}  // namespace netdyno::load
