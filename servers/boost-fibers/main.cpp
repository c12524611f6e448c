// Raw non-blocking sockets and an own epoll loop; a stackful fiber serves each connection, all on one thread.
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

/// A connection and the fiber that serves it.
struct Client final : EpollConnection<FiberHandle> {
  using EpollConnection::EpollConnection;
  Fiber fiber;  // last: it is destroyed first, as it refers to all of the above
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : options_(options), listener_(std::move(listener)), signals_(std::move(signals)), buffer_(options.read_buffer) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    Fiber accepting{stacks_, [this] { accept_all(); }};
    Fiber ending{stacks_, [this] { end_on_signal(); }};
    while (!grace_.over() && (listener_ || !clients_.empty())) {
      loop_.turn();
      clients_.end_turn();
    }
    clients_.clear();
  }

  const Counters& counters() const { return counters_; }

 private:
  void accept_all() {
    Gate gate{loop_, listener_.get()};
    while (true) {
      Accepted next = accept_next(listener_.get(), true);
      if (next.status == AcceptStatus::accepted) {
        add(std::move(next.fd));
      } else if (next.status == AcceptStatus::try_again) {
        wait_until_readable(gate);
      } else if (next.status == AcceptStatus::exhausted) {
        sleep_for(loop_, std::chrono::milliseconds{10});
      } else {
        return;
      }
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    counters_.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), loop_, options_, counters_);
    if (!client->watch() || !stacks_.prepare()) return;  // no room: this client is closed
    client->fiber.start(stacks_, [this, served = client.get()] { serve(*served); });
    clients_.add(std::move(client));
  }

  /// One connection, from its first byte to its last. Effects are carried out here, as in epoll-coroutines; a function
  /// of their own could wait just as well.
  void serve(Client& client) {
    while (client.member && !client.broken()) {
      wait_for_input(client);
      client.receive(buffer_);
      bool reply_pending = false;
      for (const Effect& effect : client.effects) {
        if (client.broken()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            client.send(client.effects.bytes(effect));
            reply_pending = true;
            break;
          case Effect::Kind::broadcast:
            clients_.broadcast(effect.frame, options_.audience == Audience::others ? &client : nullptr);
            break;
          case Effect::Kind::wait:
            wait_unless_reset(client, effect.remaining());
            break;
          case Effect::Kind::burn:
            wait_for_long_work(loop_);
            if (!burn_cpu_unless_stopped(signals_.get(), grace_, effect.duration)) client.give_up();
            break;
          case Effect::Kind::close:
            client.member = false;
            reply_pending = true;
            break;
        }
      }
      // Back-pressure: a client that takes no replies is not read. Broadcasts are no replies: they fill the outbox.
      if (reply_pending && !client.all_sent()) wait_until_sent(client);
    }
    if (!client.broken()) end_stream(client.fd());
    clients_.remove(client);
  }

  void end_on_signal() {
    Gate gate{loop_, signals_.get()};
    wait_until_readable(gate);
    grace_.start();
    listener_.reset();
    clients_.stop_receiving();
    sleep_until(loop_, grace_.end());  // wakes run(), which reads the clock
  }

  const ServerOptions& options_;
  Counters counters_;
  Loop<FiberHandle> loop_;
  UniqueFd listener_;
  UniqueFd signals_;
  std::vector<char> buffer_;  // shared: what a read brought is given to the session before anything waits
  Stacks stacks_;
  Roster<Client> clients_;
  Grace grace_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
