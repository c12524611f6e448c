// Raw non-blocking sockets; C++20 coroutines spread over N threads, each with an epoll loop of its own.
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
struct Client final : EpollConnection<Coroutine> {
  using EpollConnection::EpollConnection;
  Task task;  // last: it is destroyed first, as it refers to all of the above
};

/// A loop, and the connections that were handed to it. After the constructor, its thread only.
class Worker final : private Watched {
 public:
  Worker(Shared& shared, Inbox& inbox)
      : shared_(shared),
        options_(shared.options),
        inbox_(inbox),
        others_(shared.inboxes, inbox, loop_),
        buffer_(options_.read_buffer) {
    if (!loop_.poller().watch(inbox_.wake_fd(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room to watch an inbox");
  }

  /// Returns after a shutdown signal, once all connections here are done or the grace is over.
  void run() {
    while (!shared_.grace.over() && !(ending_ && clients_.empty())) {
      loop_.turn();
      others_.publish();
      clients_.end_turn();
    }
    inbox_.close();
    clients_.clear();
  }

 private:
  void on_events(std::uint32_t) override { take_mail(); }

  void take_mail() {
    Mail& mail = others_.take();
    for (const SharedFrame& frame : mail.frames) clients_.broadcast(frame, nullptr);
    for (UniqueFd& connection : mail.connections) add(std::move(connection));
    if (mail.end) ending_ = end();
    mail.clear();
  }

  void add(UniqueFd fd) {
    auto client = std::make_unique<Client>(std::move(fd), loop_, options_, shared_.counters);
    if (!client->watch()) return;  // no room: this client is closed
    client->task = serve(*client);
    clients_.add(std::move(client));
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
    clients_.stop_receiving();
    co_await sleep_until(loop_, shared_.grace.end());  // wakes run(), which reads the clock
  }

  Shared& shared_;
  const ServerOptions& options_;
  Inbox& inbox_;
  Loop<Coroutine> loop_{options_.busy_poll};
  InboxExchange others_;
  std::vector<char> buffer_;    // shared: what a read brought is given to the session before anything waits
  std::optional<Task> ending_;  // since the shutdown signal
  Roster<Client> clients_;
};

/// The main thread: it accepts, hands connections to the workers in turn, and ends the program.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : shared_(options), listener_(std::move(listener)), signals_(std::move(signals)) {
    for (Inbox& inbox : shared_.inboxes) workers_.push_back(std::make_unique<Worker>(shared_, inbox));
  }

  void start_threads() {
    start_or_die([this] {
      for (const auto& worker : workers_) threads_.emplace_back([&worker]() noexcept { worker->run(); });
    });
  }

  /// Returns after a shutdown signal, once all workers are done, each at the end of the grace at the latest.
  void run() {
    const Task accepting = accept_all();
    const Task ending = end_on_signal();
    while (listener_) loop_.turn();
    threads_.clear();
  }

  Totals totals() const { return shared_.counters.totals(); }
  const ConnectionsPerThread& connections_per_thread() const { return shared_.connections_per_thread; }

 private:
  Task accept_all() {
    Gate gate{loop_, listener_.get()};
    while (true) {
      Accepted next = accept_next(listener_.get(), true);
      if (next.status == AcceptStatus::accepted) {
        hand_over(std::move(next.fd));
      } else if (next.status == AcceptStatus::try_again) {
        co_await readable(gate);
      } else if (next.status == AcceptStatus::exhausted) {
        co_await sleep_for(loop_, std::chrono::milliseconds{10});
      } else {
        co_return;
      }
    }
  }

  void hand_over(UniqueFd connection) {
    set_nodelay(connection.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    shared_.connections_per_thread.add(next_worker_);
    shared_.inboxes[next_worker_].add(std::move(connection));
    next_worker_ = (next_worker_ + 1) % shared_.inboxes.size();
  }

  Task end_on_signal() {
    Gate gate{loop_, signals_.get()};
    co_await readable(gate);
    shared_.grace.start();
    listener_.reset();
    for (Inbox& inbox : shared_.inboxes) inbox.tell_to_end();
  }

  Shared shared_;
  Loop<Coroutine> loop_;
  UniqueFd listener_;
  UniqueFd signals_;
  std::size_t next_worker_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::jthread> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, {ThreadModel::any, Backend::none, BusyPoll::possible});
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  server.start_threads();
  announce_ready(endpoint);

  server.run();
  print_totals(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
