// UDP multicast: a chat message is sent once, to a group that every client has joined. Everything else is as in
// udp-coroutines: one socket, an own epoll loop, a coroutine for each client that made itself known, all on one thread.
#include <functional>
#include <memory>
#include <utility>

#include "lib/cli/option_values.hpp"
#include "lib/net/multicast.hpp"
#include "lib/server/grace.hpp"
#include "servers/_shared/datagram/client.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

/// A client and the coroutine that serves it.
struct Client final : DatagramClient<Coroutine> {
  using DatagramClient::DatagramClient;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

class Server final : private Watched {
 public:
  Server(const ServerOptions& options, const Address& group, UniqueFd socket, UniqueFd signals)
      : options_(options),
        group_(group),
        socket_(std::move(socket)),
        signals_(std::move(signals)),
        receiver_(longest_datagram(options), merge_arrivals(socket_.get()), counters_),
        sender_(Sender::to_socket(socket_.get()), Sender::can_cut(socket_.get()), options.delivery_mode(),
                options.outbox_limit, counters_),
        room_(options.peers),
        peers_(options, room_, counters_,
               [this](const Address& address, PeerRoom::Place place) { return meet(address, std::move(place)); }) {
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

  const Counters& counters() const { return counters_; }

 private:
  /// Runs one turn. Its messages leave at its end, many datagrams with one system call.
  void turn() {
    loop_.turn();
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
      auto ruling = peers_.receive(from, bytes, now, std::bind_front(&Server::send_bye, this));
      if (ruling.answer) sender_.push(from, *ruling.answer);
      if (ruling.kind == Peers::Ruling::Kind::message) ruling.peer->deliver(bytes);
      if (ruling.gone) leaving_.add(std::move(ruling.gone));
    });
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
      for (const Effect& effect : client.effects) {
        if (client.left()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            sender_.push_copy(client.address(), client.effects.bytes(effect));
            break;
          case Effect::Kind::broadcast:
            sender_.push_copy(group_, effect.frame->bytes);
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
      peers_.expire(Grace::Clock::now(), std::bind_front(&Server::send_bye, this));
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
    co_await sleep_until(loop_, grace_.end());  // wakes run(), which looks at the time
  }

  bool all_answered() const {
    bool all = !has_arrivals(socket_.get()) && !sender_.waiting();
    peers_.for_each([&](const Address&, const Client& client) { all = all && client.idle(); });
    return all;
  }

  using Peers = PeerTable<Address, Client>;

  const ServerOptions& options_;
  const Address group_;
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
  bool waits_to_send_ = false;
  bool ending_ = false;
};

/// The socket of the server, on its own address: clients send to it and are answered from it, and the group's messages
/// leave by it. None of those reaches it.
UniqueFd bind_and_join(ServerOptions options, const MulticastPlace& place) {
  options.listen = {"udp", to_string(*place.url.server), place.url.port, ""};
  UniqueFd socket = bind_udp(options);
  set_multicast_output(socket.get(), place.interface, place.url.ttl);
  if (!join_group(socket.get(), place.url.group, place.interface)) die("no room to join " + to_string(place.url.group));
  return socket;
}

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  bool anywhere = false;
  const ServerOptions options = parse_server_options(
      argc, argv, ThreadModel::one, "multicast", [&anywhere](auto& line) { add_multicast_anywhere(line, anywhere); });
  MulticastPlace place = multicast_place(program_name(argv[0]), "--listen", options.listen, anywhere);
  UniqueFd signals = termination_signals();
  UniqueFd socket = bind_and_join(options, place);
  place.url.port = local_endpoint(socket.get(), "udp").port;
  Server server{options, to_address(place.url.group, place.url.port), std::move(socket), std::move(signals)};
  announce_ready(to_url(place.url));

  server.run();
  print_totals_with_peers(server.counters().totals());
}
