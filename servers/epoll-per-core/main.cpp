// Raw non-blocking sockets; C++20 coroutines on N threads, each of which accepts for itself (SO_REUSEPORT, or
// EPOLLEXCLUSIVE) and has an epoll loop of its own.
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lib/cli/option_values.hpp"
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

/// --accept: a listener for each thread (SO_REUSEPORT), or one that the loops of all threads watch (EPOLLEXCLUSIVE).
enum class Accept { reuseport, exclusive };

/// A listener that other loops watch, too. For a connection the kernel wakes one loop that waits, or more, but not all
/// (EPOLLEXCLUSIVE, epoll_ctl(2)). Level-triggered, so that what one loop leaves waits for the next (as nginx has it).
class SharedGate final : private Watched {
 public:
  SharedGate(Loop<Coroutine>& loop, int fd) : loop_(loop), fd_(fd) {}

  void open() {
    if (!loop_.poller().watch(fd_, EPOLLIN | EPOLLEXCLUSIVE, *this)) die("epoll_ctl: no room to watch a listener");
    open_ = true;
  }
  void close() {
    if (std::exchange(open_, false)) loop_.poller().unwatch(fd_);
  }
  void when_readable(Coroutine next) { waiting_ = next; }

 private:
  void on_events(std::uint32_t) override {
    if (waiting_) loop_.call_soon(std::exchange(waiting_, {}));
  }

  Loop<Coroutine>& loop_;
  const int fd_;
  bool open_ = false;
  Coroutine waiting_{};
};

auto readable(SharedGate& gate) {
  return Suspend{[&gate](Coroutine me) { gate.when_readable(me); }};
}

/// A listener, a loop, and the connections that it accepted. After the constructor, its thread only.
class Worker final : private Watched {
 public:
  Worker(Shared& shared, std::size_t number, std::shared_ptr<UniqueFd> listener, Accept accept)
      : shared_(shared),
        options_(shared.options),
        number_(number),
        inbox_(shared.inboxes[number]),
        others_(shared.inboxes, inbox_, loop_),
        listener_(std::move(listener)),
        shared_gate_(loop_, listener_->get()),
        accept_(accept),
        buffer_(options_.read_buffer) {
    if (!loop_.poller().watch(inbox_.wake_fd(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room to watch an inbox");
  }

  /// Returns after a shutdown signal, once all connections here are done or the grace is over.
  void run() {
    const Task accepting = accept_ == Accept::exclusive ? accept_in_turn() : accept_all();
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
    Gate gate{loop_, listener_->get()};
    while (listener_) {
      Accepted next = accept_next(listener_->get(), true);
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

  /// One connection for each event, as nginx has it (multi_accept off): others wait for whichever loop asks next.
  Task accept_in_turn() {
    shared_gate_.open();
    while (true) {
      co_await readable(shared_gate_);
      if (!listener_) co_return;
      Accepted next = accept_next(listener_->get(), true);
      if (next.status == AcceptStatus::accepted) {
        add(std::move(next.fd));
      } else if (next.status == AcceptStatus::exhausted) {
        shared_gate_.close();  // which would be readable all the time
        co_await sleep_for(loop_, std::chrono::milliseconds{10});
        if (!listener_) co_return;
        shared_gate_.open();
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
    shared_gate_.close();
    listener_.reset();
    clients_.stop_receiving();
    co_await sleep_until(loop_, shared_.grace.end());  // wakes run(), which reads the clock
  }

  Shared& shared_;
  const ServerOptions& options_;
  const std::size_t number_;
  Inbox& inbox_;
  Loop<Coroutine> loop_{options_.busy_poll};
  InboxExchange others_;
  std::shared_ptr<UniqueFd> listener_;  // closed with the last that has it
  SharedGate shared_gate_;
  const Accept accept_;
  std::vector<char> buffer_;    // shared: what a read brought is given to the session before anything waits
  std::optional<Task> ending_;  // since the shutdown signal
  Roster<Client> clients_;
};

/// The main thread: it starts the others, and ends them on a shutdown signal.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd first_listener, Accept accept) : shared_(options) {
    std::vector listeners{std::make_shared<UniqueFd>(std::move(first_listener))};
    while (listeners.size() < shared_.inboxes.size())
      listeners.push_back(accept == Accept::exclusive ? listeners.front()
                                                      : std::make_shared<UniqueFd>(listen_tcp_on_port_of(
                                                            *listeners.front(), options.backlog, true)));
    for (std::size_t i = 0; i < listeners.size(); ++i)
      workers_.push_back(std::make_unique<Worker>(shared_, i, std::move(listeners[i]), accept));
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
  Accept accept = Accept::reuseport;
  const ServerOptions options = parse_server_options(
      argc, argv, {ThreadModel::any, Backend::none, BusyPoll::possible}, "tcp", [&](CommandLine& line) {
        add_choice(line, "--accept", accept, {{"reuseport", Accept::reuseport}, {"exclusive", Accept::exclusive}},
                   "a listener for each thread (SO_REUSEPORT), or one that all threads watch (EPOLLEXCLUSIVE)");
      });
  const UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), accept};
  server.start_threads();
  announce_ready(endpoint);

  server.end_on_signal(signals);
  print_totals(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
