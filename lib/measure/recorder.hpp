#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/measure/clock.hpp"
#include "lib/measure/histogram.hpp"
#include "lib/measure/timeline.hpp"

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
  std::uint64_t closed_after_reply = 0;  // of those established: by the server, as it may, with a new one to follow
  std::uint64_t attempted() const { return established + refused + timed_out + reset + other; }
};

/// Over the whole life. `received` counts every verified reply, a repeated one too. How these counts hold together is
/// in protocol/load-result.md, "Populations".
struct MessageCounts {
  std::uint64_t due = 0;   // meant to be sent
  std::uint64_t sent = 0;  // of these, each once
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t late = 0;  // timed answers that came after the timeout
  std::uint64_t unexpected =
      0;                     // answers of a foreign server, or of grpc, that came whole and are not what was expected
  std::uint64_t resent = 0;  // sent again, as their connection ended before their answer came
  std::uint64_t unsent() const { return due - sent; }
  std::int64_t lost() const {
    return static_cast<std::int64_t>(expected) - static_cast<std::int64_t>(received - duplicated + unexpected);
  }
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

/// The things of which a fault counts some. A share of faults is one of the things of its own population.
enum class Population : std::size_t {
  messages,    // due
  replies,     // that came
  connects,    // attempted
  connections  // established
};
constexpr std::size_t population_count = 4;

/// A fault in words for people, and how often it was seen.
struct FaultKind {
  std::string what;
  Population population = Population::messages;
  std::uint64_t count = 0;
  Nanos first = never;
};

/// Faults in the order in which they were first seen. Their words hold what a server sent, so there is room for a few
/// kinds of fault only.
struct Faults {
  std::vector<FaultKind> kinds;
  std::array<std::uint64_t, population_count> others{};  // of further kinds, by population

  void note(std::string_view what, Population population, Nanos moment, std::uint64_t count = 1);
  void add(const Faults& other);
  /// The sum over all kinds.
  std::uint64_t count(Population population) const;
  std::uint64_t count_of_others() const;
};

/// Handshakes of encrypted connections, over the whole life: from connected to encrypted.
struct Handshakes {
  Histogram times;
  std::uint64_t resumed = 0;  // of them, those that took up an earlier session
  std::string protocol;       // of the first, as people call it
  std::string cipher;

  void add(const Handshakes& other);
};

/// The first bytes that the first connection of a load sent and received. Kept short, as a server may have sent them.
struct FirstExchange {
  static constexpr std::size_t longest = 400;
  std::string sent;
  std::string received;

  static void note(std::string& kept, std::string_view bytes) {
    if (kept.size() < longest) kept.append(bytes.substr(0, longest - kept.size()));
  }
};

/// Figures of one part of the window, where its parts are recorded separately.
struct StepFigures {
  Histogram response;           // of the messages that were meant for it
  std::uint64_t sent = 0;       // meant for it, and sent
  std::uint64_t completed = 0;  // answered within it
  std::uint64_t late = 0;       // of completed: after the timeout
  std::uint64_t errors = 0;     // within it
};

/// In place of an errno: a connect did not begin, for the name had no address, or not in time.
inline constexpr int unresolved_name = -1;

/// Everything that a thread counts and times; several are merged into one. Owning thread only.
struct Figures {
  Histogram response;
  Histogram service;
  Histogram own_lag;      // lateness of messages that found room in their socket: the generator's own
  Histogram blocked_lag;  // lateness of those that had to wait for the server to read
  Histogram receive_lag;  // from the kernel's arrival of an answer to the stamp in its response time; of a sample
  std::uint64_t kernel_timed = 0;  // of the histogram `response`: ended by the kernel's arrival of the answer itself
  Histogram chunk_lag;             // of the chunks of streams: how late, by their schedule
  std::uint64_t chunks_in_window = 0;  // that came within it
  std::uint64_t early_chunks = 0;      // over the whole life: that came before they were due
  Histogram connect;
  Histogram connection;  // of each connection, the mean response time of the messages that are in response
  ConnectCounts connections;
  std::uint64_t connected_in_window = 0;
  int other_connect_error = 0;  // an errno behind connections.other, or `unresolved_name`; 0: not known
  MessageCounts messages;
  ByteCounts bytes;
  ErrorCounts errors;
  std::uint64_t scheduled_in_window = 0;
  std::uint64_t sent_in_window = 0;        // meant for the window, and sent
  std::uint64_t completed_in_window = 0;   // answered within the window
  std::uint64_t wrong_in_window = 0;       // answered within it by a wrong reply, or the end of the connection
  std::uint64_t completed_service_ns = 0;  // service times of those that were not given up before, added up
  std::int64_t service_beyond_ns = 0;   // of it, beyond the window; less the part within it of what was answered later
  std::int64_t response_beyond_ns = 0;  // the same of the response times, of the messages in `response`
  std::uint64_t late_in_window = 0;     // of completed_in_window: given up before
  std::uint64_t in_flight_ns = 0;       // sent messages, neither answered nor given up, integrated over the window
  // What was given up spent this much of the window in the air, and this much of it since it was meant to be sent.
  std::uint64_t given_up_service_ns = 0;
  std::uint64_t given_up_response_ns = 0;
  std::uint64_t late_responses = 0;  // of the histogram `response`: given up before their answer came
  std::uint64_t late_response_ns = 0;
  std::uint64_t socket_drops = 0;         // over the whole life: lost by this program's own sockets
  std::map<int, std::uint64_t> statuses;  // of http replies, over the whole life; only of foreign servers
  Faults faults;                          // only of foreign servers, and of what lies between (Transport::why)
  Handshakes handshakes;
  FirstExchange first_exchange;
  std::vector<StepFigures> steps;  // empty where the window is one

  /// Whether every response time ends with the kernel's arrival of the answer, and so no receive lag is in any.
  bool all_timed_by_kernel() const { return response.count() > 0 && kernel_timed == response.count(); }

  /// How many things of this kind there were, over the whole life.
  std::uint64_t count(Population population) const;

  /// Everything of another thread, or of a later slice.
  void add(const Figures& other);
  /// Adds, of a slice that does not count, what is counted over the whole life all the same.
  void add_life(const Figures& other);
};

/// Puts moments into figures. Owning thread only.
class Recorder {
 public:
  explicit Recorder(Timeline& timeline) : timeline_(timeline) {}

  Figures figures;

  /// When the window is known, before the first moment that is recorded in it.
  void set_window(const Window& window);
  /// Once, after that: the parts of the window, one after the other, by their ends.
  void set_steps(std::vector<Nanos> ends) {
    step_ends_ = std::move(ends);
    figures.steps.resize(step_ends_.size());
  }
  /// The window ends earlier than it was to.
  void end_window(Nanos end) {
    window_.end = end;
    slot_end_ = std::min(slot_end_, end);
  }

  void note_scheduled(Nanos intended) {
    ++figures.messages.due;
    figures.scheduled_in_window += window_.holds(intended);
  }

  /// A connection stands that was begun then.
  void note_connected(Nanos began, Nanos connected_at) {
    figures.connect.record(connected_at - began);
    ++figures.connections.established;
    figures.connected_in_window += window_.holds(connected_at);
  }

  /// `blocked`: the message had to wait until its connection could take it.
  void note_sent(Nanos intended, Nanos sent_at, bool blocked) {
    count_in_flight(sent_at, 1);
    ++figures.messages.sent;
    if (!window_.holds(intended)) return;
    ++figures.sent_in_window;
    if (!step_ends_.empty()) ++step(intended).sent;
    (blocked ? figures.blocked_lag : figures.own_lag).record(sent_at - intended);
  }

  /// `given_up`: it was, before this answer came.
  void note_answered(Nanos intended, Nanos sent_at, Nanos answered_at, bool given_up = false) {
    if (!given_up) count_in_flight(answered_at, -1);
    if (window_.holds(intended)) {
      figures.response.record(answered_at - intended);
      figures.service.record(answered_at - sent_at);
      if (!step_ends_.empty()) step(intended).response.record(answered_at - intended);
      if (given_up) {
        ++figures.late_responses;
        figures.late_response_ns += static_cast<std::uint64_t>(answered_at - intended);
      }
    }
    const auto within = given_up ? 0 : static_cast<std::int64_t>(within_window(sent_at, answered_at));
    if (!window_.holds(answered_at)) figures.service_beyond_ns -= within;
    if (!given_up) {
      const Nanos whole = window_.holds(intended) ? answered_at - intended : 0;
      figures.response_beyond_ns += whole - static_cast<std::int64_t>(within_window(intended, answered_at));
    }
    if (!counts(answered_at)) return;
    roll(answered_at);
    ++figures.completed_in_window;
    if (!step_ends_.empty()) ++step(answered_at).completed;
    figures.late_in_window += given_up;
    if (!given_up) {
      figures.completed_service_ns += static_cast<std::uint64_t>(answered_at - sent_at);
      figures.service_beyond_ns += answered_at - sent_at - within;
    }
    slot_responses_.record(answered_at - intended);
  }

  /// The answer that was just noted came after the timeout.
  void note_late(Nanos answered_at) {
    ++figures.messages.late;
    if (!step_ends_.empty() && counts(answered_at)) ++step(answered_at).late;
  }

  /// A chunk of a stream came.
  void note_chunk(Nanos due, Nanos arrived_at) {
    if (window_.holds(due)) figures.chunk_lag.record(std::max<Nanos>(0, arrived_at - due));
    figures.chunks_in_window += window_.holds(arrived_at);
  }

  /// An answer had been in the kernel for so long when it was stamped.
  void note_lag(Nanos intended, Nanos lag) {
    if (window_.holds(intended)) figures.receive_lag.record(lag);
  }

  /// The moment that note_answered() gets for this message is the kernel's stamp, not a clock reading of this program.
  void note_kernel_stamp(Nanos intended) { figures.kernel_timed += window_.holds(intended); }

  /// The answer to a sent message is no longer awaited.
  void note_given_up(Nanos intended, Nanos sent_at, Nanos given_up_at) {
    count_in_flight(given_up_at, -1);
    figures.given_up_service_ns += within_window(sent_at, given_up_at);
    figures.given_up_response_ns += within_window(intended, given_up_at);
  }

  /// The connection of a sent message ended before its answer came. It will be sent again, on the next.
  void note_taken_back(Nanos intended, Nanos sent_at, Nanos taken_back_at) {
    count_in_flight(taken_back_at, -1);
    figures.given_up_service_ns += within_window(sent_at, taken_back_at);
    --figures.messages.sent;
    ++figures.messages.resent;
    if (!window_.holds(intended)) return;
    --figures.sent_in_window;
    if (!step_ends_.empty()) --step(intended).sent;
  }

  /// A reply came that is wrong, or the end of its connection instead: an error, and an answer.
  void note_wrong(Nanos moment) {
    figures.wrong_in_window += window_.holds(moment);
    note_error(moment);
  }

  /// One error of any kind, for the time series.
  void note_error(Nanos moment, std::uint64_t count = 1) {
    if (!counts(moment)) return;
    roll(moment);
    slot_errors_ += count;
    if (!step_ends_.empty()) step(moment).errors += count;
  }

  /// Delivers the slots of the time series that are over.
  void roll(Nanos now) {
    while (now >= slot_end_) deliver_slot();
  }

  /// Completes the time series and the integral. Once, at the end of the thread's work.
  void finish();

 private:
  void deliver_slot();

  /// The part of the window that a moment lies in.
  StepFigures& step(Nanos moment) {
    const auto after = std::ranges::upper_bound(step_ends_, moment);
    const auto number = static_cast<std::size_t>(after - step_ends_.begin());
    return figures.steps[std::min(number, figures.steps.size() - 1)];
  }

  /// How much of a span of time lies in the window.
  std::uint64_t within_window(Nanos from, Nanos to) const {
    from = std::clamp(from, window_.start, window_.end);
    to = std::clamp(to, window_.start, window_.end);
    return to > from ? static_cast<std::uint64_t>(to - from) : 0;
  }

  /// Whether a moment lies in the window and there is still a slot for it: the kernel's stamp of an answer is earlier
  /// than its reading, before which the last slot may have been delivered.
  bool counts(Nanos moment) const { return window_.holds(moment) && slot_ < timeline_.size(); }

  /// Kernel stamps come in the order in which they are read. An earlier moment corrects what has been integrated since.
  void count_in_flight(Nanos moment, std::int64_t change) {
    if (moment >= last_change_) {
      figures.in_flight_ns += within_window(last_change_, moment) * static_cast<std::uint64_t>(in_flight_);
      last_change_ = moment;
    } else {
      figures.in_flight_ns += within_window(moment, last_change_) * static_cast<std::uint64_t>(change);
    }
    in_flight_ += change;
  }

  Timeline& timeline_;
  Window window_;
  std::vector<Nanos> step_ends_;
  Histogram slot_responses_;
  std::uint64_t slot_errors_ = 0;
  std::size_t slot_ = 0;
  Nanos slot_end_ = never;
  Nanos last_change_ = 0;
  std::int64_t in_flight_ = 0;
};

}  // namespace netdyno::load
