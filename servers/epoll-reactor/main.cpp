// Raw non-blocking sockets and an own epoll loop; a connection is a chain of callbacks, all on one thread.
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/epoll/callback.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

class Client;

/// State shared by all clients, as there is one thread.
struct Shared {
  Shared(const ServerOptions& server_options, UniqueFd signal_fd)
      : options(server_options), signals(std::move(signal_fd)), buffer(options.read_buffer) {}

  const ServerOptions& options;
  UniqueFd signals;
  Counters counters;
  Loop<Callback> loop{options.busy_poll};
  std::vector<char> buffer;  // what a read brought is given to the session before the next callback
  Roster<Client> clients;
  Grace grace;
};

/// One connection as a chain of callbacks: on_input, then carry_out until every effect is done, then go_on, which waits
/// for input again. What must live from one callback to the next is a member.
class Client final : public EpollConnection<Callback> {
 public:
  Client(UniqueFd fd, Shared& shared)
      : EpollConnection(std::move(fd), shared.loop, shared.options, shared.counters), shared_(shared) {}

  void start() { when_readable(callback<&Client::on_input>(*this)); }

 private:
  void on_input() {
    receive(shared_.buffer);
    next_ = effects.begin();
    reply_pending_ = false;
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its callback comes back here.
  void carry_out() {
    while (next_ != effects.end() && !broken()) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write:
          send(effects.bytes(effect));
          reply_pending_ = true;
          break;
        case Effect::Kind::broadcast:
          shared_.clients.broadcast(effect.frame, shared_.options.audience == Audience::others ? this : nullptr);
          break;
        case Effect::Kind::wait:
          return when_passed(effect.remaining(), callback<&Client::carry_out>(*this));
        case Effect::Kind::burn:
          to_burn_ = effect.duration;
          return shared_.loop.in_a_turn_for_long_work(callback<&Client::on_turn_for_long_work>(*this));
        case Effect::Kind::close:
          member = false;
          reply_pending_ = true;
          break;
      }
    }
    // Back-pressure: a client that takes no replies is not read. Broadcasts are no replies: they fill the outbox.
    if (reply_pending_ && !all_sent()) return when_sent(callback<&Client::go_on>(*this));
    go_on();
  }

  void on_turn_for_long_work() {
    if (!burn_cpu_unless_stopped(shared_.signals.get(), shared_.grace, to_burn_)) give_up();
    carry_out();
  }

  void go_on() {
    if (member && !broken()) return start();
    if (!broken()) end_stream(fd());
    shared_.clients.remove(*this);
  }

  Shared& shared_;
  decltype(effects.begin()) next_;
  bool reply_pending_ = false;  // replies, and they may not be sent yet
  std::chrono::nanoseconds to_burn_{0};
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : shared_{options, std::move(signals)},
        listener_(std::move(listener)),
        acceptable_(shared_.loop, listener_.get()),
        stop_signal_(shared_.loop, shared_.signals.get()) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    accept_all();
    stop_signal_.when_readable(callback<&Server::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

  const Counters& counters() const { return shared_.counters; }

 private:
  /// Accepts all waiting connections, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_next(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_next(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      acceptable_.when_readable(callback<&Server::accept_all>(*this));
    } else if (next.status == AcceptStatus::exhausted) {
      shared_.loop.call_at(Grace::Clock::now() + std::chrono::milliseconds{10}, callback<&Server::accept_all>(*this));
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_);
    if (!client->watch()) return;  // no room: this client is closed
    client->start();
    shared_.clients.add(std::move(client));
  }

  void end() {
    shared_.grace.start();
    listener_.reset();
    shared_.clients.stop_receiving();
    shared_.loop.wake_at(shared_.grace.end());
  }

  Shared shared_;
  UniqueFd listener_;
  Gate<Callback> acceptable_;
  Gate<Callback> stop_signal_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, {ThreadModel::one, Backend::none, BusyPoll::possible});
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
