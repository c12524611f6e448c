#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "lib/server/grace.hpp"
#include "servers/_shared/datagram/client.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {

/// A client and the coroutine that serves it.
struct CoroutineClient final : DatagramClient<Coroutine> {
  using DatagramClient::DatagramClient;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// All clients that made themselves known, by their addresses.
using CoroutineClients = PeerTable<Address, CoroutineClient>;

/// Serves the clients of one UDP socket on one thread. `Room` says how a chat message reaches them: `add` queues one as
/// it comes, `send` what it has kept at the end of each turn.
template <typename Room>
class CoroutineServer final : private Watched {
 public:
  CoroutineServer(const ServerOptions& options, Room room, UniqueFd socket, UniqueFd signals)
      : options_(options),
        room_(std::move(room)),
        socket_(std::move(socket)),
        signals_(std::move(signals)),
        receiver_(longest_datagram(options), merge_arrivals(socket_.get()), counters_),
        sender_(Sender::to_socket(socket_.get()), Sender::can_cut(socket_.get()), options.delivery_mode(),
                options.outbox_limit, counters_),
        places_(options.peers),
        peers_(options, places_, counters_,
               [this](const Address& address, PeerRoom::Place place) { return meet(address, std::move(place)); }) {
    if (!loop_.poller().watch(socket_.get(), EPOLLIN, *this)) die("epoll_ctl: no room to watch a socket");
  }

  /// Returns after a shutdown signal, once what had arrived by then is answered or the grace is over.
  void run() {
    const Task expiring = expire();
    const Task ending = end_on_signal();
    while (!grace_.over() && !(ending_ && all_answered())) turn();
    peers_.clear(std::bind_front(&CoroutineServer::send_bye, this));
    sender_.flush();
    while (sender_.waiting() && !grace_.over()) turn();
  }

  const Counters& counters() const { return counters_; }

 private:
  /// Runs one turn. Its messages leave at its end, many datagrams with one system call.
  void turn() {
    loop_.turn();
    room_.send(sender_, peers_);
    sender_.flush();
    if (std::exchange(waits_to_send_, sender_.waiting()) != sender_.waiting())
      loop_.poller().rewatch(socket_.get(), EPOLLIN | (waits_to_send_ ? EPOLLOUT : 0u), *this);
    leaving_.end_turn();
  }

  /// One system call for what has arrived. If there is more, the next turn begins with it.
  void on_events(std::uint32_t events) override {
    if ((events & (EPOLLIN | EPOLLERR)) == 0) return;
    const auto now = Grace::Clock::now();
    receiver_.receive(socket_.get(), [&](const Address& from, std::string_view bytes) {
      auto ruling = peers_.receive(from, bytes, now, std::bind_front(&CoroutineServer::send_bye, this));
      if (ruling.answer) sender_.push(from, *ruling.answer);
      if (ruling.action == CoroutineClients::Ruling::Action::message) ruling.peer->deliver(bytes);
      if (ruling.gone) leaving_.add(std::move(ruling.gone));
    });
  }

  std::unique_ptr<CoroutineClient> meet(const Address& address, PeerRoom::Place place) {
    auto client = std::make_unique<CoroutineClient>(address, std::move(place), loop_, options_, counters_);
    client->task = serve(*client);
    return client;
  }

  /// One client, from its first message to its last.
  Task serve(CoroutineClient& client) {
    while (!client.left()) {
      if (!client.has_message()) co_await message(client);
      client.receive();
      for (const Effect& effect : client.effects) {
        if (client.left()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            sender_.push_copy(client.address(), client.effects.bytes(effect));
            break;
          case Effect::Kind::broadcast:
            room_.add(sender_, effect.frame->bytes, client);
            break;
          case Effect::Kind::wait:
            co_await sleep_for(loop_, effect.duration);
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!burn_cpu_unless_stopped(signals_.get(), grace_, effect.duration)) co_return;  // the program ends
            break;
          case Effect::Kind::close:
            client.renew_session();
            break;
        }
      }
    }
    leaving_.remove(client);
  }

  Task expire() {
    while (true) {
      co_await sleep_until(loop_, peers_.next_expiry(Grace::Clock::now()));
      peers_.expire(Grace::Clock::now(), std::bind_front(&CoroutineServer::send_bye, this));
    }
  }

  void send_bye(const Address& address, std::uint64_t token, std::unique_ptr<CoroutineClient> client) {
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
    bool all = !has_arrivals(socket_.get()) && !sender_.waiting();
    peers_.for_each([&](const Address&, const CoroutineClient& client) { all = all && client.idle(); });
    return all;
  }

  const ServerOptions& options_;
  Room room_;
  Counters counters_;
  Grace grace_;
  Loop<Coroutine> loop_;
  UniqueFd socket_;
  UniqueFd signals_;
  Receiver receiver_;
  Sender sender_;
  PeerRoom places_;
  CoroutineClients peers_;
  Leaving<CoroutineClient> leaving_;
  bool waits_to_send_ = false;
  bool ending_ = false;
};

}  // namespace netdyno
