// One ZeroMQ ROUTER on a thread that owns it; C++20 coroutines serve the peers, spread over N worker threads.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/epoll/coroutine.hpp"
#include "common/epoll/fifo.hpp"
#include "common/epoll/grace.hpp"
#include "common/epoll/loop.hpp"
#include "common/session.hpp"
#include "common/zmq/input.hpp"
#include "common/zmq/options.hpp"
#include "common/zmq/reception.hpp"
#include "common/zmq/router.hpp"
#include "mailbox.hpp"

namespace netdyno {
namespace {

/// A peer. Each half belongs to one thread; it lives until its worker has said that it is done with it.
struct Client final : ZmqPeer {
  Client(std::string routing_id, PeerRoom::Place room, std::size_t its_worker, const ZmqServerOptions& options,
         Counters& counters)
      : ZmqPeer{std::move(routing_id), std::move(room)},
        worker(its_worker),
        waiting_room(options),
        session(make_session(options.server, counters)),
        effects(options.server.write_mode) {}

  // The socket's thread only, and what ZmqPeer has.
  const std::size_t worker;
  WaitingRoom waiting_room;
  bool known = true;

  // Its worker only.
  std::unique_ptr<Session> session;
  Effects effects;
  Fifo<zmq::message_t> requests;
  Coroutine waiting{};  // for a request, or for the end
  bool leaving = false;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// From the socket's thread to a worker.
struct Order {
  enum class Kind { join, request, leave, end };
  Kind kind;
  Client* client = nullptr;
  zmq::message_t message = {};
};

/// From a worker to the socket's thread.
struct Answer {
  enum class Kind {
    reply,
    broadcast,
    done,  // with one request, which is `message`
    left   // the client is not used any more
  };
  Kind kind;
  Client* client;
  zmq::message_t message = {};
  SharedFrame frame = {};
};

/// What all threads share. Any thread.
struct Shared {
  explicit Shared(const ServerOptions& server_options)
      : options(server_options), orders(static_cast<std::size_t>(options.threads)) {}

  const ServerOptions& options;
  Counters counters;
  Grace grace;
  std::deque<Mailbox<Order>> orders;  // one for each worker
  Mailbox<Answer> answers;
};

/// A loop, and the coroutines of the peers that were given to it. After the constructor, its thread only.
class Worker final : private Watched {
 public:
  Worker(Shared& shared, Mailbox<Order>& orders) : shared_(shared), orders_(orders) {
    if (!loop_.poller().watch(orders_.wake_fd(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room for a mailbox");
  }

  /// Returns when it is ordered to.
  void run() {
    while (!ended_) {
      loop_.turn();
      shared_.answers.put(answers_);  // of one turn at once: one lock, and one wake-up at most
    }
  }

 private:
  void on_events(std::uint32_t) override {
    orders_.take(taken_);
    for (Order& order : taken_) carry_out(order);
    taken_.clear();
  }

  void carry_out(Order& order) {
    switch (order.kind) {
      case Order::Kind::join:
        order.client->task = serve(*order.client);
        break;
      case Order::Kind::request:
        order.client->requests.push(std::move(order.message));
        wake(*order.client);
        break;
      case Order::Kind::leave:
        order.client->leaving = true;
        wake(*order.client);
        break;
      case Order::Kind::end:
        ended_ = true;
        break;
    }
  }

  /// The next request of a peer, in the next turn at the earliest; or nothing, as it has left.
  auto request(Client& client) {
    return Suspend{[this, &client](Coroutine me) {
      client.waiting = me;
      if (!client.requests.empty() || client.leaving) wake(client);
    }};
  }
  void wake(Client& client) {
    if (client.waiting) loop_.soon(std::exchange(client.waiting, Coroutine{}));
  }

  /// One peer, from its first request to its last. Effects are carried out here, as a coroutine of their own would
  /// allocate a frame per message.
  Task serve(Client& client) {
    while (true) {
      co_await request(client);
      if (client.requests.empty()) break;
      zmq::message_t message = client.requests.pop();
      client.effects.clear();
      client.session->receive(bytes_of(message), client.effects);
      for (const Effect& effect : client.effects) {
        if (shared_.grace.over()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            answers_.push_back({Answer::Kind::reply, &client, zmq::message_t{client.effects.bytes(effect)}});
            break;
          case Effect::Kind::broadcast:
            answers_.push_back({.kind = Answer::Kind::broadcast, .client = &client, .frame = effect.frame});
            break;
          case Effect::Kind::wait:
            if (!client.leaving) co_await sleep_for(loop_, effect.duration);
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!client.leaving) burn_cpu_unless([this] { return shared_.grace.over(); }, effect.duration);
            break;
          case Effect::Kind::close:  // a peer that sent nonsense stays, and begins anew
            client.session = make_session(shared_.options, shared_.counters);
            break;
        }
      }
      answers_.push_back({Answer::Kind::done, &client, std::move(message)});
    }
    answers_.push_back({Answer::Kind::left, &client});
  }

  Shared& shared_;
  Mailbox<Order>& orders_;
  Loop<Coroutine> loop_;
  std::vector<Order> taken_;
  std::vector<Answer> answers_;  // of this turn
  bool ended_ = false;
};

/// The thread that owns the socket: all messages come and go here. It is the main thread.
class Server final : private Watched {
 public:
  Server(const ZmqServerOptions& options, UniqueFd signals)
      : options_(options),
        shared_(options.server),
        signals_(std::move(signals)),
        router_(options),
        input_(loop_, router_),
        reception_(shared_.options, router_, shared_.counters, *this),
        orders_(shared_.orders.size()) {
    if (!loop_.poller().watch(shared_.answers.wake_fd(), EPOLLIN | EPOLLET, *this))
      die("epoll_ctl: no room for a mailbox");
    for (Mailbox<Order>& orders : shared_.orders) workers_.push_back(std::make_unique<Worker>(shared_, orders));
  }

  void start_threads() {
    try {
      for (const auto& worker : workers_) threads_.emplace_back([&worker]() noexcept { worker->run(); });
    } catch (const std::system_error& error) {
      die(std::string{"cannot start a thread: "} + error.what() + "; ask for fewer --threads, or raise ulimit -u");
    }
  }

  Url endpoint() const { return router_.endpoint(); }
  Totals totals() const { return shared_.counters.totals(); }

  /// Returns when the program was told to end, and all that was asked is answered or the grace is over.
  void run() {
    const Task receiving = receive_all();
    const Task forgetting = forget_silent();
    const Task ending = end_when_told();
    while (!shared_.grace.over() && !(takes_no_more() && asked_ == 0)) {
      loop_.turn();
      input_.look_again();
      hand_out();
    }
    reception_.forget_all();
    for (auto& orders : orders_) orders.push_back({Order::Kind::end});
    hand_out();
    threads_.clear();
    gone_.clear();
    router_.close(shared_.grace.end() - Grace::Clock::now());
  }

  /// A peer stays with its worker, so that what it asks for is served in order.
  std::unique_ptr<Client> make_peer(std::string id, PeerRoom::Place place) {
    next_worker_ = (next_worker_ + 1) % orders_.size();
    auto client = std::make_unique<Client>(std::move(id), std::move(place), next_worker_, options_, shared_.counters);
    order({Order::Kind::join, client.get()});
    return client;
  }

  void on_message(Client& client, zmq::message_t message) {
    if (!client.waiting_room.take(message.size())) return shared_.counters.add_receive_dropped();
    ++asked_;
    order({Order::Kind::request, &client, std::move(message)});
  }

  void on_gone(std::unique_ptr<Client> client) {
    client->known = false;
    order({Order::Kind::leave, client.get()});
    gone_.emplace(client.get(), std::move(client));
  }

 private:
  using Clock = Grace::Clock;

  void on_events(std::uint32_t) override {
    shared_.answers.take(taken_);
    for (Answer& answer : taken_) carry_out(answer);
    taken_.clear();
  }

  void carry_out(Answer& answer) {
    switch (answer.kind) {
      case Answer::Kind::reply:
        if (answer.client->known) reception_.send(*answer.client, std::move(answer.message));
        break;
      case Answer::Kind::broadcast:
        reception_.broadcast(answer.frame, shared_.options.audience == Audience::others ? answer.client : nullptr);
        break;
      case Answer::Kind::done:
        answer.client->waiting_room.give_back(answer.message.size());
        --asked_;
        break;
      case Answer::Kind::left:
        gone_.erase(answer.client);
        break;
    }
  }

  void order(Order order) { orders_[order.client->worker].push_back(std::move(order)); }

  /// After a turn: what each worker is to do because of it, at once.
  void hand_out() {
    for (std::size_t i = 0; i < orders_.size(); ++i) shared_.orders[i].put(orders_[i]);
  }

  auto next_turn() {
    return Suspend{[this](Coroutine me) { loop_.soon(me); }};
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
        co_await next_turn();  // what has arrived is handed out, and answers are sent, before more is taken
      }
    }
  }

  bool takes_no_more() const { return told_to_end_ && Clock::now() >= last_call_; }

  Task forget_silent() {
    while (true) co_await sleep_until(loop_, reception_.forget_silent());
  }

  Task end_when_told() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    shared_.grace.start();
    last_call_ = Clock::now() + on_its_way;
    told_to_end_ = true;
    co_await sleep_until(loop_, last_call_);
    co_await sleep_until(loop_, shared_.grace.end());  // both wake run(), which looks at the time
  }

  /// Between two looks at everything else.
  static constexpr int most_per_turn = 256;

  const ZmqServerOptions& options_;
  Shared shared_;
  Loop<Coroutine> loop_;
  UniqueFd signals_;
  Router router_;
  RouterInput input_;
  std::unordered_map<const Client*, std::unique_ptr<Client>> gone_;  // until their workers are done with them
  Reception<Client, Server> reception_;
  std::vector<std::vector<Order>> orders_;  // of this turn, for each worker
  std::vector<Answer> taken_;
  std::size_t asked_ = 0;  // requests that are not answered yet
  std::size_t next_worker_ = 0;
  bool told_to_end_ = false;
  Clock::time_point last_call_{};  // for requests, when told to end
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::jthread> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ZmqServerOptions options = parse_zmq_server_options(argc, argv, ThreadModel::any);
  UniqueFd signals = termination_signals();
  Server server{options, std::move(signals)};
  server.start_threads();
  announce_ready(server.endpoint());

  server.run();
  print_totals_with_peers(server.totals());
}
