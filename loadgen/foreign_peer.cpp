#include <algorithm>
#include <string_view>
#include <utility>

#include "loadgen/peer.hpp"

namespace netdyno::load {
namespace {

std::string_view words_for(ConnectFailure failure) {
  switch (failure) {
    case ConnectFailure::refused:
      return "a connection was refused";
    case ConnectFailure::timed_out:
      return "a connect took too long";
    case ConnectFailure::reset:
      return "a connection was reset before it was established";
    case ConnectFailure::other:
      break;
  }
  return "a connection could not be made";
}

/// The fault of a reply, and the part of it that had come by then.
std::string in_part(std::string what, const Decoder& decoder) {
  if (const std::string begun = decoder.begun(); !begun.empty()) what += ": " + begun;
  return what;
}

class ForeignPeer final : public Peer {
 public:
  using Peer::Peer;

  void on_received(std::uint32_t number, bool good, Nanos now) override {
    Connection& connection = thread_.clients[number];
    if (!good) {
      ++thread_.recorder.figures.errors.protocol;
      reconnect(number, thread_.matching.why_broken(), Matching::End::given_up, now);
    } else if (connection.closing || connection.served()) {
      thread_.recorder.figures.connections.closed_after_reply += !connection.served();
      reconnect(number, "", Matching::End::announced, now);
    } else if (!connection.blocked && connection.sendable() > 0) {
      thread_.writer.resume(number, connection);  // it waited for an answer, and not for this program
    }
  }

  /// The end of a connection may be the end of a reply, or cut it short. Requests that it leaves unanswered, after
  /// others were answered, are sent again where LoadPlan::may_be_sent_again allows it: a server may close a connection
  /// that it has served (RFC 9112, 9.3.1). Where a reset answers requests that were on their way then, Linux reports
  /// the close. A reset without a close is an error, even if the request is sent again: its outcome is unknown.
  void on_closed(std::uint32_t number, CloseReason reason, const std::string& cause, Nanos now) override {
    Connection& connection = thread_.clients[number];
    thread_.matching.begin_reading(number, now);
    thread_.matching.set_lag(never);  // the kernel says of bytes when they arrived, and not of an end
    std::string why = cause;          // the oldest that waits is given up for it
    bool is_error = false;
    if (why.empty() && connection.decoder) {
      why = end_reply(number, reason);
    } else if (why.empty() && is_idle(number)) {
      why = "a connection that was to stay idle was closed";
    } else if (why.empty() && !connection.replied && connection.flight.unanswered() > 0) {
      why = reason == CloseReason::reset ? "the connection was reset instead of a reply"
                                         : "the connection was closed instead of a reply";
    } else if (why.empty() && reason == CloseReason::reset && connection.flight.unanswered() > 0 &&
               thread_.plan.may_be_sent_again()) {
      is_error = true;
      thread_.recorder.figures.faults.note("the connection was reset with a request in flight", Population::connections,
                                           now);
      thread_.recorder.note_error(now);
    }
    const auto end = connection.closing             ? Matching::End::announced
                     : reason == CloseReason::reset ? Matching::End::reset
                                                    : Matching::End::closed;
    const bool cost_messages = reconnect(number, why, end, now) > 0;
    const bool is_fault = is_error || !why.empty() || cost_messages;
    ++(is_fault ? errors_by(reason) : thread_.recorder.figures.connections.closed_after_reply);
  }

  void on_reconnect_failed(std::uint32_t, ConnectFailure failure, bool noted, Nanos now) override {
    if (!noted) thread_.recorder.figures.faults.note(words_for(failure), Population::connects, now);
    thread_.recorder.note_error(now);
  }

  /// What waits for a connection is sent however late, but a count has to come to its end.
  GivenUp give_up_late(std::uint32_t number, Nanos now) override {
    Connection& connection = thread_.clients[number];
    const Nanos deadline = now - thread_.plan.timeout;
    const std::uint64_t late = thread_.matching.give_up(connection, deadline, now);
    const bool is_last = !connection.open() && (all_taken() || is_cut_off());
    const std::uint64_t unsent = is_last ? thread_.matching.give_up_unsent(connection, deadline) : 0;
    note_silence(number, late + unsent, now);
    if (connection.open() && connection.flight.unanswered() > 0 && connection.flight.oldest_sent() <= deadline)
      reconnect(number, "", Matching::End::given_up, now);
    return {late + unsent, unsent > 0};
  }

  std::uint64_t give_up_all(std::uint32_t number, Nanos now) override {
    Connection& connection = thread_.clients[number];
    const std::uint64_t unanswered = thread_.matching.give_up(connection, never, now);
    const std::uint64_t unsent = connection.flight.unsent();
    note_silence(number, unanswered + (connection.open() ? 0 : unsent), now);
    thread_.recorder.figures.messages.expected += unsent;
    if (connection.open() && unsent > 0)
      thread_.recorder.figures.faults.note("never sent, as the answers before it took too long", Population::messages,
                                           now, unsent);
    return unanswered + unsent;
  }

 private:
  /// The connection is at its end, and why that is a fault, if it is. Returns how many messages it cost.
  std::uint64_t reconnect(std::uint32_t number, std::string_view why, Matching::End end, Nanos now) {
    const std::uint64_t given_up = thread_.matching.take_back(number, why, end, now);
    thread_.connecting.leave(number, events_);
    return given_up;
  }

  /// Ends the reply that had come in part. Returns why it is none; empty where the end completes it.
  std::string end_reply(std::uint32_t number, CloseReason reason) {
    Connection& connection = thread_.clients[number];
    const std::uint64_t before = connection.flight.unanswered();
    // One that goes on until the connection ends is whole only where the server has said so (RFC 9112, 9.8).
    if (reason == CloseReason::closed_by_server) connection.decoder->end(thread_.matching);
    if (connection.flight.unanswered() != before) return {};
    return in_part(reason == CloseReason::reset ? "the connection was reset in the middle of a reply"
                                                : "the connection ended in the middle of a reply",
                   *connection.decoder);
  }

  void note_silence(std::uint32_t number, std::uint64_t messages, Nanos now) {
    if (messages == 0) return;
    const Connection& connection = thread_.clients[number];
    std::string why{no_answer_in_time};
    if (!connection.open())
      why = "no connection in time";
    else if (connection.decoder)
      why = in_part(why, *connection.decoder);
    else if (!connection.replied && thread_.transport.unacknowledged(number))
      why += ", as the server's system never took the request (full accept queue?)";
    thread_.recorder.figures.faults.note(why, Population::messages, now, messages);
  }

  /// Other threads may have taken the last of the count.
  bool all_taken() const { return thread_.plan.count > 0 && thread_.control.is_count_exhausted(); }

  /// A closed loop whose server has left: no connection stands, so the rest of its count would wait until the server is
  /// back, if ever.
  bool is_cut_off() const {
    if (thread_.plan.count == 0 || thread_.plan.rate_hz) return false;
    return std::ranges::none_of(thread_.clients.connections, &Connection::open);
  }
};

}  // namespace

std::unique_ptr<Peer> make_foreign_peer(const ThreadParts& thread, TransportEvents& events) {
  return std::make_unique<ForeignPeer>(thread, events);
}

}  // namespace netdyno::load
