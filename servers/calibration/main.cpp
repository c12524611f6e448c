// An instrument, not a contestant: answers after exactly programmed delays, with programmed stalls and faults, and
// tells at the end what it did. One thread, on the loop of the epoll family.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/epoll/callback.hpp"
#include "common/epoll/connection.hpp"
#include "common/epoll/grace.hpp"
#include "common/epoll/loop.hpp"
#include "common/epoll/roster.hpp"
#include "delays.hpp"
#include "programme.hpp"
#include "record.hpp"

namespace netdyno::calibration {
namespace {

using Clock = Record::Clock;

class Client;

/// What all clients share, as there is one thread.
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
      const auto from = first_request + stall.at;
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
  Fate fate;
  std::string bytes;
  std::size_t header;  // bytes of it that `--write-mode split` sends apart
};

/// One connection. Two chains of callbacks take turns: one reads requests and puts their answers into a queue
/// (on_input, carry_out, go_on), the other sends what is due (deliver). Answers keep the order of their requests.
class Client final : public Connection<Callback> {
 public:
  Client(UniqueFd fd, Shared& shared, std::uint64_t number)
      : Connection(std::move(fd), shared.loop, shared.by_part, shared.counters), shared_(shared), number_(number) {}

  void start() { when_readable(callback<&Client::on_input>(*this)); }

 private:
  void on_input() {
    const auto now = Clock::now();
    const auto until = shared_.held_until(number_);
    if (until > now && !broken()) return shared_.loop.at(until, callback<&Client::on_input>(*this));
    if (!shared_.begun && has_input()) begin(now);
    receive(shared_.buffer);
    next_ = effects.begin();
    done_ = now;
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its callback comes back here.
  void carry_out() {
    while (next_ != effects.end() && !broken()) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write:
          add_part(effects.bytes(effect));
          break;
        case Effect::Kind::wait:
          return shared_.loop.at(Clock::now() + effect.duration, callback<&Client::after_service>(*this));
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
    if (!delivering_) deliver();
    go_on();
  }

  bool has_input() const {
    int bytes = 0;
    return ioctl(fd(), FIONREAD, &bytes) == 0 && bytes > 0;
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
    if (!burn_cpu_unless_told(shared_.signals.get(), shared_.grace, to_burn_)) give_up();
    after_service();
  }

  /// A session that writes by parts gives header and body of an answer one after the other, in these two workloads.
  void add_part(std::string_view bytes) {
    const bool has_header = shared_.options.workload == Workload::rpc || shared_.options.workload == Workload::http;
    if (has_header && header_.empty()) {
      header_ = bytes;
      return;
    }
    add_answer(std::exchange(header_, {}), bytes);
  }

  void add_answer(std::string header, std::string_view body) {
    shared_.record.arrived(done_);
    const auto delay = shared_.delays->next();
    auto due = done_ + delay;
    if (!answers_.empty() && answers_.back().due > due) {
      due = answers_.back().due;
      shared_.record.held_for_order();
    }
    const std::uint64_t number = ++shared_.answers;
    const Fate fate = shared_.programme.faults.of(number);
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
    Clock::now() < wake_up ? shared_.loop.at(wake_up, me) : shared_.loop.soon(me);
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
      shared_.record.answered(answer.number, answer.fate, answer.delay, now - answer.arrived);
      if (answer.fate == Fate::corrupted) corrupt(answer);
      if (answer.fate != Fate::lost) put(answer);
      if (answer.fate == Fate::duplicated) put(answer);
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

  /// Changes the last byte that is not a line's end; with the highest bit, so that text never gets a line's end.
  static void corrupt(Answer& answer) {
    const std::size_t line_end = answer.bytes.size() > 1 && answer.bytes.ends_with('\n') ? 1 : 0;
    char& byte = answer.bytes[answer.bytes.size() - 1 - line_end];
    byte = static_cast<char>(byte ^ 0x80);
  }

  static std::size_t cost(const Answer& answer) { return sizeof(Answer) + answer.bytes.size(); }

  /// Back-pressure: who does not take its answers, or has too much waiting, is not read until deliver() got on.
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

class Server {
 public:
  Server(const Settings& settings, UniqueFd listener, UniqueFd signals)
      : shared_{settings, std::move(signals)},
        listener_(std::move(listener)),
        acceptable_(shared_.loop, listener_.get()),
        told_(shared_.loop, shared_.signals.get()) {
    shared_.on_first_request = callback<&Server::set_stalls>(*this);
  }

  /// Returns when the program was told to end, and all connections are done or the grace is over.
  void run() {
    accept_all();
    told_.when_readable(callback<&Server::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

  void print_totals() {
    record_stalls_of_connections();
    netdyno::print_totals(shared_.counters.totals(), "calibration", shared_.record.json());
  }

 private:
  /// Takes in all who wait, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_one(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_one(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      acceptable_.when_readable(callback<&Server::accept_all>(*this));
    } else if (next.status == AcceptStatus::exhausted) {
      shared_.loop.at(Clock::now() + std::chrono::milliseconds{10}, callback<&Server::accept_all>(*this));
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_, ++accepted_);
    if (!client->watch()) return;  // no room: this client is closed
    client->start();
    shared_.clients.add(std::move(client));
  }

  void set_stalls() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto begin = shared_.first_request + stall.at;
      if (!stall.connection) shared_.loop.at(begin, callback<&Server::stall_all>(*this));
    }
  }

  /// Those that concerned somebody. They are held to the clock, so they are as long as programmed.
  void record_stalls_of_connections() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto end = shared_.first_request + stall.at + stall.duration;
      if (stall.connection && shared_.begun && *stall.connection <= accepted_ && end <= Clock::now())
        shared_.record.stalled(stall, end - stall.duration, end);
    }
  }

  /// Sleeps, as a server does that was stopped; only the end of the program is looked out for.
  void stall_all() {
    const auto now = Clock::now();
    for (const Stall& stall : shared_.programme.stalls) {
      const auto begin = shared_.first_request + stall.at;
      const auto end = begin + stall.duration;
      if (stall.connection || begin > now || end <= now) continue;
      sleep_until(end);
      shared_.record.stalled(stall, now, Clock::now());
    }
  }

  void sleep_until(Clock::time_point end) {
    pollfd told{shared_.signals.get(), POLLIN, 0};
    for (auto left = end - Clock::now(); left.count() > 0; left = end - Clock::now()) {
      const auto sleep = std::max(left - shared_.programme.look_out, Clock::duration{0});
      const auto s = std::chrono::duration_cast<std::chrono::seconds>(sleep);
      const timespec timeout{s.count(), (sleep - s).count()};
      if (ppoll(&told, 1, &timeout, nullptr) > 0) return;
    }
  }

  void end() {
    shared_.grace.start();
    listener_.reset();
    shared_.clients.stop_receiving();
    shared_.loop.at(shared_.grace.end(), callback<&Server::look_at_the_time>(*this));
  }

  void look_at_the_time() {}  // run() does, after the turn that this callback ended the wait of

  Shared shared_;
  UniqueFd listener_;
  Gate<Callback> acceptable_;
  Gate<Callback> told_;
  std::uint64_t accepted_ = 0;
};

/// Its connections inherit it from the listener (socket(7)).
void limit_receive_buffer(int listener, std::size_t bytes) {
  const auto size = static_cast<int>(bytes);
  if (size > 0 && setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0)
    die(std::string{"SO_RCVBUF: "} + std::strerror(errno));
}

}  // namespace
}  // namespace netdyno::calibration

int main(int argc, char** argv) {
  using namespace netdyno;
  const calibration::Settings settings = calibration::parse_settings(argc, argv);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(settings.server, true);
  calibration::limit_receive_buffer(listener.get(), settings.programme.receive_buffer);
  const Url endpoint = local_endpoint(listener.get());
  calibration::Server server{settings, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  server.print_totals();
}
