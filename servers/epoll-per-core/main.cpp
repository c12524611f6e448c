// Raw non-blocking sockets; C++20 coroutines on N threads, each of which accepts for itself (SO_REUSEPORT) and has an
// epoll loop of its own.
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "lib/server/threads.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/exchange/exchange.hpp"

namespace netdyno {
namespace {

/// State shared by all threads. Any thread.
struct Shared {
  explicit Shared(const ServerOptions& server_options)
      : options(server_options), connections_per_thread(options.threads) {
    for (int i = 0; i < options.threads; ++i) inboxes.emplace_back(inbox_limit(options));
  }

  const ServerOptions& options;
  Counters counters;
  ConnectionsPerThread connections_per_thread;
  Grace grace;
  std::deque<Inbox> inboxes;  // one for each worker; none comes or goes once the threads run
};

/// A connection and the coroutine that serves it.
struct Client final : Connection<Coroutine> {
  using Connection::Connection;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// A listener, a loop, and the connections that the kernel gave to that listener. After the constructor, its thread
/// only.
class Worker final : private Watched {
 public:
  Worker(Shared& shared, std::size_t number, UniqueFd listener)
      : shared_(shared),
        options_(shared.options),
        number_(number),
        inbox_(shared.inboxes[number]),
        others_(shared.inboxes, inbox_, loop_),
        listener_(std::move(listener)),
        buffer_(options_.read_buffer) {
    if (!loop_.poller().watch(inbox_.wake_fd(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room to watch an inbox");
  }

  /// Returns after a shutdown signal, once all connections here are done or the grace is over.
  void run() {
    const Task accepting = accept_all();
    while (!shared_.grace.over() && !(ending_ && clients_.empty())) {
      loop_.turn();
      others_.publish();
      clients_.end_turn();
    }
    inbox_.close();
    clients_.clear();
  }

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
    shared_.counters.add_connection();
    shared_.connections_per_thread.add(number_);
    auto client = std::make_unique<Client>(std::move(fd), loop_, options_, shared_.counters);
    if (!client->watch()) return;  // no room: this client is closed
    client->task = serve(*client);
    clients_.add(std::move(client));
  }

  void on_events(std::uint32_t) override { take_mail(); }

  void take_mail() {
    Mail& mail = others_.take();
    for (const SharedFrame& frame : mail.frames) clients_.broadcast(frame, nullptr);
    if (mail.end) ending_ = end();
    mail.clear();
  }

  /// One connection, from its first byte to its last. Effects are carried out here, as a coroutine of their own would
  /// allocate a frame per message.
  Task serve(Client& client) {
    while (client.member && !client.broken()) {
      co_await input(client);
      while (!others_.has_room()) co_await others_.room();
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
            broadcast(effect.frame, client);
            break;
          case Effect::Kind::wait:
            co_await passed(client, effect.remaining());
            break;
          case Effect::Kind::burn:
            co_await turn_for_long_work(loop_);
            if (!burn_cpu_unless([this] { return shared_.grace.over(); }, effect.duration)) client.give_up();
            break;
          case Effect::Kind::close:
            take_mail();  // frames that other threads sent before this are for this client, too
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

  void broadcast(const SharedFrame& frame, const Client& sender) {
    clients_.broadcast(frame, options_.audience == Audience::others ? &sender : nullptr);
    others_.queue(frame);
  }

  Task end() {
    listener_.reset();
    clients_.stop_receiving();
    co_await sleep_until(loop_, shared_.grace.end());  // wakes run(), which looks at the time
  }

  Shared& shared_;
  const ServerOptions& options_;
  const std::size_t number_;
  Inbox& inbox_;
  Loop<Coroutine> loop_;
  Exchange others_;
  UniqueFd listener_;
  std::vector<char> buffer_;    // shared: what a read brought is given to the session before anything waits
  std::optional<Task> ending_;  // since the shutdown signal
  Roster<Client> clients_;
};

/// The main thread: it starts the others, and ends them on a shutdown signal.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd first_listener) : shared_(options) {
    std::vector<UniqueFd> listeners;
    listeners.push_back(std::move(first_listener));
    while (listeners.size() < shared_.inboxes.size())
      listeners.push_back(listen_tcp_on_port_of(listeners.front(), options.backlog, true));
    for (std::size_t i = 0; i < listeners.size(); ++i)
      workers_.push_back(std::make_unique<Worker>(shared_, i, std::move(listeners[i])));
  }

  void start_threads() {
    start_or_die([this] {
      for (const auto& worker : workers_) threads_.emplace_back([&worker]() noexcept { worker->run(); });
    });
  }

  /// Returns when all workers are done, each at the end of the grace at the latest.
  void end_on_signal(const UniqueFd& signals) {
    pollfd stop_signal{signals.get(), POLLIN, 0};
    while (poll(&stop_signal, 1, -1) <= 0) {
    }
    shared_.grace.start();
    for (Inbox& inbox : shared_.inboxes) inbox.tell_to_end();
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
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  const UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start_threads();
  announce_ready(endpoint);

  server.end_on_signal(signals);
  print_totals(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
