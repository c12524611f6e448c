#pragma once

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/arrivals.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/calibration/delays.hpp"
#include "servers/_shared/calibration/programme.hpp"
#include "servers/_shared/calibration/record.hpp"
#include "servers/_shared/epoll/callback.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno::calibration {

using Clock = Record::Clock;

class Client;

/// State shared by all clients, as there is one thread.
struct Shared {
  Shared(const Settings& settings, UniqueFd signal_fd)
      : options(settings.server),
        programme(settings.programme),
        by_part(settings.server),
        signals(std::move(signal_fd)),
        delays(make_delays(programme.delay, programme.seed)),
        record(programme),
        buffer(options.read_buffer) {
    by_part.write_mode = WriteMode::split;
  }

  /// When the stalls that concern a connection let it go on; in the past where none holds it.
  Clock::time_point held_until(std::uint64_t connection) const {
    const auto now = Clock::now();
    auto until = Clock::time_point::min();
    for (const Stall& stall : programme.stalls) {
      const auto from = first_request + stall.begin;
      if (begun && stall.connection == connection && now >= from) until = std::max(until, from + stall.duration);
    }
    return until;
  }

  const ServerOptions& options;
  const Programme& programme;
  ServerOptions by_part;  // sessions tell header and body apart, so that one answer is known from the next
  UniqueFd signals;
  Counters counters;
  Loop<Callback> loop;
  std::unique_ptr<Delays> delays;
  Record record;
  WallClock wall_clock;
  std::uint64_t answers = 0;
  bool begun = false;
  Clock::time_point first_request{};
  Callback on_first_request;
  std::vector<char> buffer;  // what a read brought is given to the session before the next callback
  Roster<Client> clients;
  Grace grace;
};

/// An answer that waits to be due.
struct Answer {
  std::uint64_t number;
  Clock::time_point arrived;
  std::chrono::nanoseconds delay;  // programmed
  Clock::time_point due;
  AnswerFate fate;
  std::string bytes;
  std::size_t header;  // bytes of it that `--write-mode split` sends apart
};

/// One connection. Two chains of callbacks take turns: one reads requests and puts their answers into a queue
/// (on_input, carry_out, go_on), the other sends what is due (deliver). Answers keep the order of their requests.
class Client final : public EpollConnection<Callback> {
 public:
  Client(UniqueFd fd, Shared& shared, std::uint64_t number)
      : EpollConnection(std::move(fd), shared.loop, shared.by_part, shared.counters),
        shared_(shared),
        number_(number) {}

  void start() { when_readable(callback<&Client::on_input>(*this)); }

 private:
  void on_input() {
    const auto now = Clock::now();
    const auto until = shared_.held_until(number_);
    if (until > now && !broken()) {
      shared_.loop.call_at(until, callback<&Client::on_input>(*this));
      return;
    }
    if (!shared_.begun && has_input()) begin(now);
    if (shared_.programme.arrival_times) note_arrival(now);
    receive(shared_.buffer);
    next_ = effects.begin();
    done_ = now;
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its callback comes back here.
  void carry_out() {
    while (next_ != effects.end() && !broken()) {
      const Effect& effect = *next_++;
      if (effect.kind != Effect::Kind::write) end_answer();
      switch (effect.kind) {
        case Effect::Kind::write:
          add_part(effects.bytes(effect));
          break;
        case Effect::Kind::wait:
          return when_passed(effect.remaining(), callback<&Client::after_service>(*this));
        case Effect::Kind::burn:
          to_burn_ = effect.duration;
          return shared_.loop.in_a_turn_for_long_work(callback<&Client::on_turn_for_long_work>(*this));
        case Effect::Kind::close:
          member = false;
          break;
        case Effect::Kind::broadcast:
          std::abort();  // chat is not spoken
      }
    }
    end_answer();
    if (!delivering_) deliver();
    go_on();
  }

  bool has_input() const {
    int bytes = 0;
    return ioctl(fd(), FIONREAD, &bytes) == 0 && bytes > 0;
  }

  /// How long what is about to be read was there: from the arrival of its first bytes to when it counts as read.
  void note_arrival(Clock::time_point now) {
    KernelStamp stamp;
    char first = 0;
    receive_stamped(fd(), {&first, 1}, MSG_PEEK | MSG_DONTWAIT, stamp);
    if (!stamp) return;
    const auto arrived = shared_.wall_clock.monotonic(*stamp, WallClock::read());
    const std::chrono::nanoseconds read{now.time_since_epoch()};
    if (arrived && *arrived <= read.count()) shared_.record.note_read_lag(read - std::chrono::nanoseconds{*arrived});
  }

  /// The first bytes of the first request: stalls count from here.
  void begin(Clock::time_point now) {
    shared_.begun = true;
    shared_.first_request = now;
    shared_.on_first_request();
  }

  void after_service() {
    done_ = Clock::now();
    carry_out();
  }

  void on_turn_for_long_work() {
    if (!burn_cpu_unless_stopped(shared_.signals.get(), shared_.grace, to_burn_)) give_up();
    after_service();
  }

  /// A session that writes by parts gives header and body of an answer one after the other, in these two workloads. To
  /// HEAD there is no body: another header follows, which no body looks like (it has no blank), or no write at all.
  void add_part(std::string_view bytes) {
    const bool has_header = shared_.options.workload == Workload::rpc || speaks_http(shared_.options.workload);
    if (bytes.starts_with("HTTP/1.1 ")) end_answer();
    if (has_header && header_.empty()) {
      header_ = bytes;
      return;
    }
    add_answer(std::exchange(header_, {}), bytes);
  }

  void end_answer() {
    if (!header_.empty()) add_answer(std::exchange(header_, {}), {});
  }

  void add_answer(std::string header, std::string_view body) {
    shared_.record.note_arrival(done_);
    const auto delay = shared_.delays->next();
    auto due = done_ + delay;
    if (!answers_.empty() && answers_.back().due > due) {
      due = answers_.back().due;
      shared_.record.count_held_for_order();
    }
    const std::uint64_t number = ++shared_.answers;
    const AnswerFate fate = shared_.programme.faults.fate_of(number);
    const std::size_t header_size = header.size();
    answers_.push_back({number, done_, due - done_, due, fate, header.append(body), header_size});
    waiting_bytes_ += cost(answers_.back());
  }

  /// Sends what is due, and sees to it that it is called again for the rest.
  void deliver() {
    delivering_ = false;
    if (!broken() && all_sent()) send_due();
    if (broken()) return go_on_if_parked();
    if (!all_sent()) {
      delivering_ = true;
      when_sent(callback<&Client::deliver>(*this));
    } else if (!answers_.empty()) {
      delivering_ = true;
      deliver_at(std::max(answers_.front().due, shared_.held_until(number_)));
    }
    go_on_if_parked();
  }

  /// A timer ends a sleep some 50 us late, so the last stretch is spent asking: a callback that is wanted in the next
  /// turn keeps the loop from sleeping.
  void deliver_at(Clock::time_point due) {
    const auto wake_up = due - shared_.programme.look_out;
    const auto me = callback<&Client::deliver>(*this);
    if (Clock::now() < wake_up) {
      shared_.loop.call_at(wake_up, me);
    } else {
      shared_.loop.call_soon(me);
    }
  }

  /// Gathered: all that is due leaves in one write. Split: header and body of each in two.
  void send_due() {
    const auto now = Clock::now();
    if (shared_.held_until(number_) > now) return;
    sending_.clear();
    ends_.clear();
    for (; !answers_.empty() && answers_.front().due <= now; answers_.pop_front()) {
      Answer& answer = answers_.front();
      waiting_bytes_ -= cost(answer);
      shared_.record.note_answer(answer.number, answer.fate, answer.delay, now - answer.arrived);
      if (answer.fate == AnswerFate::corrupted) corrupt(answer.bytes);
      if (answer.fate != AnswerFate::lost) put(answer);
      if (answer.fate == AnswerFate::duplicated) put(answer);
    }
    if (shared_.options.write_mode == WriteMode::gathered) ends_.assign(1, sending_.size());
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      const auto part = std::string_view{sending_}.substr(begin, end - begin);
      if (!part.empty()) send(part);
      begin = end;
    }
  }

  void put(const Answer& answer) {
    ends_.push_back(sending_.size() + answer.header);
    sending_ += answer.bytes;
    ends_.push_back(sending_.size());
  }

  static std::size_t cost(const Answer& answer) { return sizeof(Answer) + answer.bytes.size(); }

  /// Back-pressure: a client that takes no answers, or has too much waiting, is not read until deliver() got on.
  void go_on() {
    parked_ = delivering_ && (!all_sent() || waiting_bytes_ > shared_.options.outbox_limit);
    if (parked_) return;
    if (member && !broken()) return start();
    input_done_ = true;
    finish();
  }

  void go_on_if_parked() {
    if (parked_) return go_on();
    finish();
  }

  /// Once both chains have ended.
  void finish() {
    if (!input_done_ || delivering_ || std::exchange(removed_, true)) return;
    if (!broken()) end_stream(fd());
    shared_.clients.remove(*this);
  }

  Shared& shared_;
  const std::uint64_t number_;  // in the order of accepting, from 1
  decltype(effects.begin()) next_;
  Clock::time_point done_{};  // when the request that is carried out was read, or its service time was over
  std::chrono::nanoseconds to_burn_{0};
  std::string header_;  // of the answer whose body comes next
  std::deque<Answer> answers_;
  std::size_t waiting_bytes_ = 0;
  std::string sending_;  // what the outbox points to
  std::vector<std::size_t> ends_;
  bool delivering_ = false;  // deliver() will be called
  bool parked_ = false;      // deliver() is to call go_on()
  bool input_done_ = false;
  bool removed_ = false;
};

}  // namespace netdyno::calibration
