// One ZeroMQ ROUTER, whose I/O threads do the TCP; a C++20 coroutine serves each peer, all on one thread of ours.
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/zmq/input.hpp"
#include "servers/_shared/zmq/options.hpp"
#include "servers/_shared/zmq/reception.hpp"
#include "servers/_shared/zmq/router.hpp"

namespace netdyno {
namespace {

/// A peer, what it has said, and the coroutine that serves it.
struct Client final : ZmqPeer {
  Client(std::string routing_id, PeerRoom::Place room, const ZmqServerOptions& options, Counters& counters)
      : ZmqPeer{std::move(routing_id), std::move(room)},
        session(make_session(options.server, counters)),
        effects(options.server.write_mode),
        waiting_room(options) {}

  std::unique_ptr<Session> session;
  Effects effects;
  WaitingRoom waiting_room;
  Fifo<zmq::message_t> requests;
  Coroutine waiting{};  // for a request, or for the end
  bool known = true;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

class Server {
 public:
  Server(const ZmqServerOptions& options, UniqueFd signals)
      : all_options_(options),
        options_(options.server),
        signals_(std::move(signals)),
        router_(options),
        input_(loop_, router_),
        reception_(options_, router_, counters_, *this) {}

  Url endpoint() const { return router_.endpoint(); }
  const Counters& counters() const { return counters_; }

  /// Returns after a shutdown signal, once all requests are answered or the grace is over.
  void run() {
    const Task receiving = receive_all();
    const Task forgetting = forget_silent();
    const Task ending = end_on_signal();
    while (!grace_.over() && !(takes_no_more() && unanswered_ == 0)) {
      input_.poll();  // before a turn may wait, the first one too: the coroutines began above
      loop_.turn();
      finished_.clear();
    }
    reception_.forget_all();
    gone_.clear();
    router_.close(grace_.end() - Grace::Clock::now());
  }

  std::unique_ptr<Client> make_peer(std::string id, PeerRoom::Place place) {
    auto client = std::make_unique<Client>(std::move(id), std::move(place), all_options_, counters_);
    client->task = serve(*client);
    return client;
  }

  void on_message(Client& client, zmq::message_t message) {
    if (!client.waiting_room.take(client.place, message.size())) return counters_.add_receive_dropped();
    client.requests.push(std::move(message));
    ++unanswered_;
    wake(client);
  }

  /// It lives until its coroutine has come to its end, with what was said before.
  void on_gone(std::unique_ptr<Client> client) {
    client->known = false;
    wake(*client);
    gone_.emplace(client.get(), std::move(client));
  }

 private:
  using Clock = Grace::Clock;

  /// The next request of a peer, in the next turn at the earliest; or nothing, as it is not known any more.
  auto request(Client& client) {
    return Suspend{[this, &client](Coroutine me) {
      client.waiting = me;
      if (!client.requests.empty() || !client.known) wake(client);
    }};
  }
  void wake(Client& client) {
    if (client.waiting) loop_.call_soon(std::exchange(client.waiting, Coroutine{}));
  }
  auto next_turn() {
    return Suspend{[this](Coroutine me) { loop_.call_soon(me); }};
  }

  Task receive_all() {
    while (!takes_no_more()) {
      int taken = 0;
      for (; taken < most_per_turn; ++taken) {
        auto arrived = router_.receive();
        if (!arrived) break;
        reception_.take(std::move(*arrived));
      }
      if (taken < most_per_turn) {
        co_await input_.arrival();
      } else {
        co_await next_turn();  // what has arrived is served before more is taken
      }
    }
  }

  /// One peer, from its first request to its last. Effects are carried out here, as a coroutine of their own would
  /// allocate a frame per message.
  Task serve(Client& client) {
    while (true) {
      co_await request(client);
      if (client.requests.empty()) break;
      const zmq::message_t message = client.requests.pop();
      client.effects.clear();
      client.session->receive(bytes_of(message), client.effects);
      for (const Effect& effect : client.effects) {
        if (grace_.over()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            if (client.known) reception_.send(client, zmq::message_t{client.effects.bytes(effect)});
            break;
          case Effect::Kind::broadcast:
            reception_.broadcast(effect.frame, options_.audience == Audience::others ? &client : nullptr);
            break;
          case Effect::Kind::wait:
            if (client.known) co_await sleep_for(loop_, effect.duration);
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (client.known) burn_cpu_unless_stopped(signals_.get(), grace_, effect.duration);
            break;
          case Effect::Kind::close:  // a peer that sent nonsense stays, with a new session
            client.session = make_session(options_, counters_);
            break;
        }
      }
      client.waiting_room.give_back(client.place, message.size());
      --unanswered_;
    }
    finished_.push_back(std::move(gone_.extract(&client).mapped()));
  }

  bool takes_no_more() const { return stop_requested_ && Clock::now() >= last_call_; }

  Task forget_silent() {
    while (true) co_await sleep_until(loop_, reception_.forget_silent());
  }

  Task end_on_signal() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    grace_.start();
    last_call_ = Clock::now() + on_its_way;
    stop_requested_ = true;
    co_await sleep_until(loop_, last_call_);
    co_await sleep_until(loop_, grace_.end());  // both wake run(), which reads the clock
  }

  /// Between two polls of everything else.
  static constexpr int most_per_turn = 256;

  const ZmqServerOptions& all_options_;
  const ServerOptions& options_;
  Counters counters_;
  Loop<Coroutine> loop_;
  UniqueFd signals_;
  Router router_;
  RouterInput input_;
  Reception<Client, Server> reception_;
  std::unordered_map<const Client*, std::unique_ptr<Client>> gone_;  // until their coroutines end
  std::vector<std::unique_ptr<Client>> finished_;                    // they have, in this turn
  std::size_t unanswered_ = 0;                                       // requests that are not answered yet
  bool stop_requested_ = false;
  Clock::time_point last_call_{};  // for requests, after a shutdown signal
  Grace grace_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ZmqServerOptions options = parse_zmq_server_options(argc, argv, ThreadModel::one);
  UniqueFd signals = termination_signals();
  Server server{options, std::move(signals)};
  announce_ready(server.endpoint());

  server.run();
  print_totals_with_peers(server.counters().totals());
}
