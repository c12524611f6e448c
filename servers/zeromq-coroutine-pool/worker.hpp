#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/session/session.hpp"
#include "mailbox.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/zmq/options.hpp"
#include "servers/_shared/zmq/reception.hpp"
#include "servers/_shared/zmq/router.hpp"

namespace netdyno {

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

/// State shared by all threads. Any thread.
struct Shared {
  explicit Shared(const ServerOptions& server_options)
      : options(server_options),
        connections_per_thread(options.threads),
        orders(static_cast<std::size_t>(options.threads)) {}

  const ServerOptions& options;
  Counters counters;
  ConnectionsPerThread connections_per_thread;
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
    if (client.waiting) loop_.call_soon(std::exchange(client.waiting, Coroutine{}));
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
          case Effect::Kind::close:  // a peer that sent nonsense stays, with a new session
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

}  // namespace netdyno
