// N threads, each with its own UDP socket on one port (SO_REUSEPORT), its own epoll loop and a coroutine for each of
// the clients that the kernel gave it.
#include <poll.h>
#include <sys/eventfd.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/threads.hpp"
#include "roster.hpp"
#include "servers/_shared/datagram/client.hpp"
#include "servers/_shared/datagram/peer_table.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

/// State shared by all threads. Any thread.
struct Shared {
  explicit Shared(const ServerOptions& server_options)
      : options(server_options),
        connections_per_thread(options.threads),
        room(options.peers),
        rosters(static_cast<std::size_t>(options.threads)),
        stop_event(eventfd(0, EFD_CLOEXEC)),
        serving(options.threads),
        answered(options.threads) {
    if (!stop_event) die("eventfd: no descriptor left; ask for fewer --threads, or raise ulimit -n");
  }

  const ServerOptions& options;
  Counters counters;
  ConnectionsPerThread connections_per_thread;
  Grace grace;
  PeerRoom room;
  std::deque<Roster> rosters;  // one for each worker; none comes or goes once the threads run
  const UniqueFd stop_event;   // readable from then on
  std::latch serving;          // all threads serve
  std::latch answered;         // no thread has anything more to say to clients of others
};

/// A client and the coroutine that serves it.
struct Client final : DatagramClient<Coroutine> {
  using DatagramClient::DatagramClient;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// A socket, a loop, and the clients whose datagrams the kernel gives to that socket. After the constructor, its thread
/// only.
class Worker final : private Watched {
 public:
  Worker(Shared& shared, std::size_t number, UniqueFd socket)
      : shared_(shared),
        options_(shared.options),
        number_(number),
        roster_(shared.rosters[number]),
        socket_(std::move(socket)),
        receiver_(longest_datagram(options_), merge_arrivals(socket_.get()), shared_.counters),
        sender_(Sender::to_socket(socket_.get()), Sender::can_cut(socket_.get()), options_.delivery_mode(),
                options_.outbox_limit, shared_.counters),
        peers_(options_, shared_.room, shared_.counters,
               [this](const Address& address, PeerRoom::Place place) { return meet(address, std::move(place)); }) {
    for (Roster& other : shared_.rosters)
      if (&other != &roster_) elsewhere_.emplace_back(other);
    if (!loop_.poller().watch(socket_.get(), EPOLLIN, *this)) die("epoll_ctl: no room to watch a socket");
  }

  /// Returns after a shutdown signal, once what had arrived by then is answered or the grace is over.
  void run() {
    const Task expiring = expire();
    const Task ending = end_on_signal();
    shared_.serving.count_down();
    while (!shared_.grace.over() && !(ending_ && all_answered())) turn();
    shared_.answered.arrive_and_wait();  // after its BYE! a client hears nothing more
    peers_.clear(std::bind_front(&Worker::send_bye, this));
    sender_.flush();
    while (sender_.waiting() && !shared_.grace.over()) turn();
  }

 private:
  /// Runs one turn. Its messages leave at its end, many datagrams with one system call.
  void turn() {
    loop_.turn();
    publish();
    broadcast();
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
      using Action = Peers::Ruling::Action;
      auto ruling = peers_.receive(from, bytes, now, std::bind_front(&Worker::send_bye, this));
      if (ruling.answer) sender_.push(from, *ruling.answer);
      if (ruling.action == Action::message) ruling.peer->deliver(bytes);
      if (ruling.gone) leaving_.add(std::move(ruling.gone));
      peers_changed_ |= ruling.action == Action::join || ruling.action == Action::leave;
    });
  }

  std::unique_ptr<Client> meet(const Address& address, PeerRoom::Place place) {
    shared_.connections_per_thread.add(number_);
    auto client = std::make_unique<Client>(address, std::move(place), loop_, options_, shared_.counters);
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
            broadcasts_.push_back({sender_.keep(effect.frame->bytes), &client});
            break;
          case Effect::Kind::wait:
            co_await sleep_for(loop_, effect.duration);
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!burn_cpu_unless([this] { return shared_.grace.over(); }, effect.duration)) co_return;
            break;
          case Effect::Kind::close:
            client.renew_session();
            break;
        }
      }
    }
    leaving_.remove(client);
  }

  /// Runs before new peers are welcomed: a welcomed peer receives what is sent from then on, on any thread.
  void publish() {
    if (!std::exchange(peers_changed_, false) || options_.workload != Workload::chat) return;
    Roster::Addresses addresses;
    addresses.reserve(peers_.size());
    peers_.for_each([&](const Address& address, const Client&) { addresses.push_back(address); });
    roster_.publish(std::move(addresses));
  }

  /// Sends to all peers, from this thread's own socket. Recipient by recipient, so that the messages of each can leave
  /// in one piece.
  void broadcast() {
    if (broadcasts_.empty()) return;
    const bool to_self = options_.audience == Audience::all;
    peers_.for_each([&](const Address& address, const Client& client) {
      for (const Broadcast& message : broadcasts_)
        if (to_self || message.sender != &client) sender_.push(address, message.text);
    });
    for (Roster::View& others : elsewhere_)
      for (const Address& address : others.addresses())
        for (const Broadcast& message : broadcasts_) sender_.push(address, message.text);
    broadcasts_.clear();
  }

  Task expire() {
    while (true) {
      co_await sleep_until(loop_, peers_.next_expiry(Grace::Clock::now()));
      peers_.expire(Grace::Clock::now(), std::bind_front(&Worker::send_bye, this));
    }
  }

  void send_bye(const Address& address, std::uint64_t token, std::unique_ptr<Client> client) {
    sender_.push(address, encode_control({ControlKind::bye, token}));
    leaving_.add(std::move(client));
    peers_changed_ = true;
  }

  Task end_on_signal() {
    Gate gate{loop_, shared_.stop_event.get()};
    co_await readable(gate);
    stop_arrivals(socket_.get());
    ending_ = true;
    co_await sleep_until(loop_, shared_.grace.end());  // wakes run(), which reads the clock
  }

  bool all_answered() const {
    bool all = !has_arrivals(socket_.get()) && !sender_.waiting();
    peers_.for_each([&](const Address&, const Client& client) { all = all && client.idle(); });
    return all;
  }

  using Peers = PeerTable<Address, Client>;
  struct Broadcast {
    std::string_view text;  // kept by sender_
    const Client* sender;
  };

  Shared& shared_;
  const ServerOptions& options_;
  const std::size_t number_;
  Roster& roster_;
  std::vector<Roster::View> elsewhere_;  // the peers known on the other threads
  Loop<Coroutine> loop_;
  UniqueFd socket_;
  Receiver receiver_;
  Sender sender_;
  std::vector<Broadcast> broadcasts_;  // in this turn
  Peers peers_;
  Leaving<Client> leaving_;
  bool peers_changed_ = false;
  bool waits_to_send_ = false;
  bool ending_ = false;
};

/// The main thread: it starts the others, and ends them on a shutdown signal.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd first_socket) : shared_(options) {
    std::vector<UniqueFd> sockets;
    sockets.push_back(std::move(first_socket));
    while (sockets.size() < shared_.rosters.size()) sockets.push_back(bind_udp_on_port_of(sockets.front(), options));
    for (std::size_t i = 0; i < sockets.size(); ++i)
      workers_.push_back(std::make_unique<Worker>(shared_, i, std::move(sockets[i])));
  }

  /// Returns when all of them serve.
  void start_threads() {
    start_or_die([this] {
      for (const auto& worker : workers_) threads_.emplace_back([&worker]() noexcept { worker->run(); });
    });
    shared_.serving.wait();
  }

  /// Returns when all of them are done, at the end of the grace at the latest.
  void end_on_signal(const UniqueFd& signals) {
    pollfd stop_signal{signals.get(), POLLIN, 0};
    while (poll(&stop_signal, 1, -1) <= 0) {
    }
    shared_.grace.start();
    eventfd_write(shared_.stop_event.get(), 1);
    threads_.clear();
  }

  Totals totals() const { return shared_.counters.totals(); }
  const ConnectionsPerThread& connections_per_thread() const { return shared_.connections_per_thread; }

 private:
  Shared shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::jthread> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any, "udp");
  const UniqueFd signals = termination_signals();
  UniqueFd socket = bind_udp(options);
  const Url endpoint = local_endpoint(socket.get(), "udp");
  Server server{options, std::move(socket)};
  server.start_threads();
  announce_ready(endpoint);

  server.end_on_signal(signals);
  print_totals_with_peers(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
