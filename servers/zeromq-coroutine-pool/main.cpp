// One ZeroMQ ROUTER on a thread that owns it; C++20 coroutines serve the peers, spread over N worker threads.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/server/grace.hpp"
#include "lib/server/threads.hpp"
#include "mailbox.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/zmq/input.hpp"
#include "servers/_shared/zmq/options.hpp"
#include "servers/_shared/zmq/reception.hpp"
#include "servers/_shared/zmq/router.hpp"
#include "worker.hpp"

namespace netdyno {
namespace {

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
    start_or_die([this] {
      for (const auto& worker : workers_) threads_.emplace_back([&worker]() noexcept { worker->run(); });
    });
  }

  Url endpoint() const { return router_.endpoint(); }
  Totals totals() const { return shared_.counters.totals(); }
  const ConnectionsPerThread& connections_per_thread() const { return shared_.connections_per_thread; }

  /// Returns after a shutdown signal, once all requests are answered or the grace is over.
  void run() {
    const Task receiving = receive_all();
    const Task forgetting = forget_silent();
    const Task ending = end_on_signal();
    while (!shared_.grace.over() && !(takes_no_more() && unanswered_ == 0)) {
      input_.poll();  // before a turn may wait, the first one too: the coroutines began above
      hand_out();
      loop_.turn();
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
    shared_.connections_per_thread.add(next_worker_);
    auto client = std::make_unique<Client>(std::move(id), std::move(place), next_worker_, options_, shared_.counters);
    order({Order::Kind::join, client.get()});
    return client;
  }

  void on_message(Client& client, zmq::message_t message) {
    if (!client.waiting_room.take(client.place, message.size())) return shared_.counters.add_receive_dropped();
    ++unanswered_;
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
        answer.client->waiting_room.give_back(answer.client->place, answer.message.size());
        --unanswered_;
        break;
      case Answer::Kind::left:
        gone_.erase(answer.client);
        break;
    }
  }

  void order(Order order) { orders_[order.client->worker].push_back(std::move(order)); }

  /// Passes each worker all its orders of a turn at once.
  void hand_out() {
    for (std::size_t i = 0; i < orders_.size(); ++i) shared_.orders[i].put(orders_[i]);
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
        co_await next_turn();  // what has arrived is handed out, and answers are sent, before more is taken
      }
    }
  }

  bool takes_no_more() const { return stop_requested_ && Clock::now() >= last_call_; }

  Task forget_silent() {
    while (true) co_await sleep_until(loop_, reception_.forget_silent());
  }

  Task end_on_signal() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    shared_.grace.start();
    last_call_ = Clock::now() + on_its_way;
    stop_requested_ = true;
    co_await sleep_until(loop_, last_call_);
    co_await sleep_until(loop_, shared_.grace.end());  // both wake run(), which reads the clock
  }

  /// Between two polls of everything else.
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
  std::size_t unanswered_ = 0;  // requests that are not answered yet
  std::size_t next_worker_ = 0;
  bool stop_requested_ = false;
  Clock::time_point last_call_{};  // for requests, after a shutdown signal
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
  print_totals_with_peers(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
