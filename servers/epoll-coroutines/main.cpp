// Raw non-blocking sockets and an own epoll loop; a C++20 coroutine serves each connection, all on one thread.
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

/// A connection and the coroutine that serves it.
struct Client final : EpollConnection<Coroutine> {
  using EpollConnection::EpollConnection;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : options_(options), listener_(std::move(listener)), signals_(std::move(signals)), buffer_(options.read_buffer) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    const Task accepting = accept_all();
    const Task ending = end_on_signal();
    while (!grace_.over() && (listener_ || !clients_.empty())) {
      loop_.turn();
      clients_.end_turn();
    }
    clients_.clear();
  }

  const Counters& counters() const { return counters_; }

 private:
  Task accept_all() {
    Gate gate{loop_, listener_.get()};
    while (true) {
      Accepted next = accept_next(listener_.get(), true);
      if (next.status == AcceptStatus::accepted) {
        add(std::move(next.fd));
      } else if (next.status == AcceptStatus::try_again) {
        co_await readable(gate);
      } else if (next.status == AcceptStatus::exhausted) {
        co_await sleep_for(loop_, std::chrono::milliseconds{10});
      } else {
        co_return;
      }
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    counters_.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), loop_, options_, counters_);
    if (!client->watch()) return;  // no room: this client is closed
    client->task = serve(*client);
    clients_.add(std::move(client));
  }

  /// One connection, from its first byte to its last. Effects are carried out here, as a coroutine of their own would
  /// allocate a frame per message.
  Task serve(Client& client) {
    while (client.member && !client.broken()) {
      co_await input(client);
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
            if (backend_.empty()) {
              co_await passed(client, effect.remaining());
            } else {
              co_await replied(backend_, effect.remaining());
            }
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!burn_cpu_unless_stopped(signals_.get(), grace_, effect.duration)) client.give_up();
            break;
          case Effect::Kind::close:
            client.member = false;
            reply_pending = true;
            break;
        }
      }
      // Back-pressure: a client that takes no replies is not read. Broadcasts are no replies: they fill the outbox.
      if (reply_pending && !client.all_sent()) co_await sent(client);
    }
    if (!client.broken()) end_stream(client.fd());
    clients_.remove(client);
  }

  Task end_on_signal() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    grace_.start();
    listener_.reset();
    clients_.stop_receiving();
    co_await sleep_until(loop_, grace_.end());  // wakes run(), which reads the clock
  }

  const ServerOptions& options_;
  Counters counters_;
  Loop<Coroutine> loop_{options_.busy_poll};
  BackendPool<Coroutine> backend_{loop_, options_};
  UniqueFd listener_;
  UniqueFd signals_;
  std::vector<char> buffer_;  // shared: what a read brought is given to the session before anything waits
  Roster<Client> clients_;
  Grace grace_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, {ThreadModel::one, Backend::pool, BusyPoll::possible});
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
