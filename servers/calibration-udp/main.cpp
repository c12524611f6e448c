// An instrument, not a contestant: what servers/calibration does over TCP, over UDP. Answers after exactly programmed
// delays, with programmed stalls and faults, and tells at the end what it did. One thread, on the loop of the epoll
// family; a coroutine takes the requests of each client, and one queue holds all answers until they are due.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/measure/witness.hpp"
#include "lib/server/grace.hpp"
#include "servers/_shared/calibration/delays.hpp"
#include "servers/_shared/calibration/programme.hpp"
#include "servers/_shared/calibration/record.hpp"
#include "servers/_shared/calibration/standstill.hpp"
#include "servers/_shared/datagram/client.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno::calibration {
namespace {

using Clock = Record::Clock;

/// A client and the coroutine that serves it.
struct Client final : DatagramClient<Coroutine> {
  using DatagramClient::DatagramClient;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// An answer that waits to be due.
struct Answer {
  std::uint64_t number;
  Clock::time_point arrived;
  std::chrono::nanoseconds delay;  // programmed
  Address to;
  std::string bytes;

  Clock::time_point due() const { return arrived + delay; }
  std::size_t cost() const { return sizeof(Answer) + bytes.size(); }
};

struct LaterDue {
  bool operator()(const Answer& a, const Answer& b) const {
    return std::tuple{a.due(), a.number} > std::tuple{b.due(), b.number};
  }
};

class Server final : private Watched {
 public:
  Server(const Settings& settings, UniqueFd socket, UniqueFd signals)
      : options_(settings.server),
        programme_(settings.programme),
        socket_(std::move(socket)),
        signals_(std::move(signals)),
        receiver_(longest_datagram(options_), merge_arrivals(socket_.get()), counters_),
        sender_(Sender::to_socket(socket_.get()), Sender::can_cut(socket_.get()), options_.delivery_mode(),
                options_.outbox_limit, counters_),
        room_(options_.peers),
        peers_(options_, room_, counters_,
               [this](const Address& address, PeerRoom::Place place) { return meet(address, std::move(place)); }),
        delays_(make_delays(programme_.delay, programme_.seed)),
        record_(programme_) {
    if (!loop_.poller().watch(socket_.get(), EPOLLIN, *this)) die("epoll_ctl: no room to watch a socket");
  }

  /// Returns after a shutdown signal, once what had arrived by then is answered or the grace is over.
  void run() {
    const Task expiring = expire();
    const Task ending = end_on_signal();
    while (!grace_.over() && !(ending_ && all_answered())) turn();
    peers_.clear(std::bind_front(&Server::send_bye, this));
    sender_.flush();
    while (sender_.waiting() && !grace_.over()) turn();
  }

  void print_totals(std::vector<load::Witness::Pause> pauses) {
    record_.take_pauses(std::move(pauses));
    print_totals_with_peers(counters_.totals(), "calibration", record_.json());
  }

 private:
  void turn() {
    loop_.turn();
    send_due();
    sender_.flush();
    if (std::exchange(waits_to_send_, sender_.waiting()) != sender_.waiting())
      loop_.poller().rewatch(socket_.get(), EPOLLIN | (waits_to_send_ ? EPOLLOUT : 0u), *this);
    leaving_.end_turn();
    wake_for_the_next();
  }

  void on_events(std::uint32_t events) override {
    if ((events & (EPOLLIN | EPOLLERR)) == 0) return;
    const auto now = Clock::now();
    receiver_.receive(socket_.get(), [&](const Address& from, std::string_view bytes) {
      auto ruling = peers_.receive(from, bytes, now, std::bind_front(&Server::send_bye, this));
      if (ruling.answer) sender_.push(from, *ruling.answer);
      if (ruling.action == Peers::Ruling::Action::message) take(*ruling.peer, bytes);
      if (ruling.gone) leaving_.add(std::move(ruling.gone));
    });
  }

  /// Bounds what waits for its answer.
  void take(Client& client, std::string_view request) {
    if (waiting_bytes_ > options_.outbox_limit) return counters_.add_receive_dropped();
    client.deliver(request);
  }

  std::unique_ptr<Client> meet(const Address& address, PeerRoom::Place place) {
    auto client = std::make_unique<Client>(address, std::move(place), loop_, options_, counters_);
    client->task = serve(*client);
    return client;
  }

  /// One client, from its first message to its last.
  Task serve(Client& client) {
    while (!client.left()) {
      if (!client.has_message()) co_await message(client);
      client.receive();
      auto done = Clock::now();  // when the request was read, or its service time was over
      begin_stalls(done);
      for (const Effect& effect : client.effects) {
        if (client.left()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            add_answer(client.address(), client.effects.bytes(effect), done);
            break;
          case Effect::Kind::wait:
            co_await sleep_for(loop_, effect.duration);
            done = Clock::now();
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!burn_cpu_unless_stopped(signals_.get(), grace_, effect.duration)) co_return;  // the program ends
            done = Clock::now();
            break;
          case Effect::Kind::close:
            client.renew_session();
            break;
          case Effect::Kind::broadcast:
            std::abort();  // chat is not spoken
        }
      }
    }
    leaving_.remove(client);
  }

  void add_answer(const Address& to, std::string_view bytes, Clock::time_point done) {
    record_.note_arrival(done);
    Answer answer{++answered_, done, delays_->next(), to, std::string{bytes}};
    waiting_bytes_ += answer.cost();
    answers_.push(std::move(answer));
  }

  void send_due() {
    for (const auto now = Clock::now(); !answers_.empty() && answers_.top().due() <= now; answers_.pop()) {
      const Answer& answer = answers_.top();
      waiting_bytes_ -= answer.cost();
      send(answer, programme_.faults.fate_of(answer.number), now);
    }
  }

  void send(const Answer& answer, AnswerFate fate, Clock::time_point now) {
    record_.note_answer(answer.number, fate, answer.delay, now - answer.arrived);
    if (fate == AnswerFate::lost) return;
    std::string bytes = answer.bytes;
    if (fate == AnswerFate::corrupted) corrupt(bytes);
    sender_.push_copy(answer.to, bytes);
    if (fate == AnswerFate::duplicated) sender_.push_copy(answer.to, bytes);
  }

  /// A timer ends a sleep some 50 us late, so the last stretch is spent asking: what is wanted in the next turn keeps
  /// the loop from sleeping.
  void wake_for_the_next() {
    if (answers_.empty()) return;
    const auto now = Clock::now();
    const auto wake_up = answers_.top().due() - programme_.look_out;
    if (wake_up <= now) return loop_.call_soon(std::noop_coroutine());
    if (alarm_ > now && alarm_ <= wake_up) return;
    alarm_ = wake_up;
    loop_.call_at(wake_up, std::noop_coroutine());
  }

  /// Stalls count from the first request, as what is recorded of them does.
  void begin_stalls(Clock::time_point now) {
    if (std::exchange(begun_, true)) return;
    first_request_ = now;
    stalling_ = carry_out_stalls();
  }

  /// The whole server stands still, as often as programmed.
  Task carry_out_stalls() {
    for (const Stall& stall : programme_.stalls) {
      co_await sleep_until(loop_, first_request_ + stall.begin);
      stand_still(programme_, first_request_, signals_.get(), record_);
    }
  }

  Task expire() {
    while (true) {
      co_await sleep_until(loop_, peers_.next_expiry(Clock::now()));
      peers_.expire(Clock::now(), std::bind_front(&Server::send_bye, this));
    }
  }

  void send_bye(const Address& address, std::uint64_t token, std::unique_ptr<Client> client) {
    sender_.push(address, encode_control({ControlKind::bye, token}));
    leaving_.add(std::move(client));
  }

  Task end_on_signal() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    grace_.start();
    stop_arrivals(socket_.get());
    ending_ = true;
    co_await sleep_until(loop_, grace_.end());  // wakes run(), which reads the clock
  }

  bool all_answered() const {
    bool all = !has_arrivals(socket_.get()) && !sender_.waiting() && answers_.empty();
    peers_.for_each([&](const Address&, const Client& client) { all = all && client.idle(); });
    return all;
  }

  using Peers = PeerTable<Address, Client>;

  const ServerOptions& options_;
  const Programme& programme_;
  Counters counters_;
  Grace grace_;
  Loop<Coroutine> loop_;
  UniqueFd socket_;
  UniqueFd signals_;
  Receiver receiver_;
  Sender sender_;
  PeerRoom room_;
  Peers peers_;
  Leaving<Client> leaving_;
  std::unique_ptr<Delays> delays_;
  Record record_;
  std::priority_queue<Answer, std::vector<Answer>, LaterDue> answers_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t answered_ = 0;
  Clock::time_point alarm_{};  // the earliest moment at which the loop was asked to wake up for an answer
  bool begun_ = false;
  Clock::time_point first_request_{};
  Task stalling_;
  bool waits_to_send_ = false;
  bool ending_ = false;
};

}  // namespace
}  // namespace netdyno::calibration

int main(int argc, char** argv) {
  using namespace netdyno;
  const calibration::Settings settings = calibration::parse_settings(argc, argv, "udp");
  UniqueFd signals = termination_signals();
  UniqueFd socket = bind_udp(settings.server);
  const Url endpoint = local_endpoint(socket.get(), "udp");
  calibration::Server server{settings, std::move(socket), std::move(signals)};
  load::Witness witness{settings.programme.to_witness};
  announce_ready(endpoint);

  server.run();
  server.print_totals(witness.stop());
}
