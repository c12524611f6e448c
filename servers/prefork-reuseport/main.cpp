// N processes, each with a listener of its own on one port (SO_REUSEPORT) and an epoll loop of its own; a connection is
// a chain of callbacks in one of them.
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "lib/cli/command_line.hpp"
#include "lib/server/children.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "lib/server/shared_counters.hpp"
#include "servers/_shared/epoll/callback.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

class Client;

/// State shared by all clients of a process, as it has one thread.
struct Shared {
  Shared(const ServerOptions& server_options, int signal_fd, Counters& counters_of_all)
      : options(server_options), signals(signal_fd), counters(counters_of_all), buffer(options.read_buffer) {}

  const ServerOptions& options;
  const int signals;
  Counters& counters;
  Loop<Callback> loop;
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
          break;  // of chat, which main refuses
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
    // Back-pressure: a client that takes no replies is not read.
    if (reply_pending_ && !all_sent()) return when_sent(callback<&Client::go_on>(*this));
    go_on();
  }

  void on_turn_for_long_work() {
    if (!burn_cpu_unless_stopped(shared_.signals, shared_.grace, to_burn_)) give_up();
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

/// What runs in one of the N processes.
class Worker {
 public:
  Worker(const ServerOptions& options, UniqueFd listener, int signals, Counters& counters)
      : shared_{options, signals, counters},
        listener_(std::move(listener)),
        acceptable_(shared_.loop, listener_.get()),
        stop_signal_(shared_.loop, signals) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    accept_all();
    stop_signal_.when_readable(callback<&Worker::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

 private:
  /// Accepts all waiting connections, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_next(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_next(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      acceptable_.when_readable(callback<&Worker::accept_all>(*this));
    } else if (next.status == AcceptStatus::exhausted) {
      shared_.loop.call_at(Grace::Clock::now() + std::chrono::milliseconds{10}, callback<&Worker::accept_all>(*this));
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

/// The parent, which starts and ends the processes.
class Server {
 public:
  Server(const ServerOptions& options, int signals, UniqueFd first_listener) : options_(options), signals_(signals) {
    listeners_.push_back(std::move(first_listener));
    while (listeners_.size() < static_cast<std::size_t>(options.threads))
      listeners_.push_back(listen_tcp_on_port_of(listeners_.front(), options.backlog, true));
  }

  void start_processes() {
    for (UniqueFd& listener : listeners_)
      if (!children_.start([&] { work(std::move(listener)); }))
        die("cannot start a process; ask for fewer --threads, or raise ulimit -u");
    listeners_.clear();  // each process has its own
  }

  /// Returns on a shutdown signal. What a process that crashed would have accepted goes to the others.
  void reap_until_signal() {
    pollfd watched[] = {{signals_, POLLIN, 0}, {children_.ended(), POLLIN, 0}};
    while (watched[0].revents == 0)
      if (poll(watched, 2, -1) > 0) children_.reap();
  }

  /// Ends every stream at what has arrived, and waits for the processes, which it kills when the grace runs out.
  void finish() { children_.finish(); }

  Totals totals() const { return counters_.get().totals(); }

 private:
  /// One of the N processes.
  void work(UniqueFd listener) {
    listeners_.clear();  // of the others: a listener that any process has open still takes clients
    Worker{options_, std::move(listener), signals_, counters_.get()}.run();
  }

  const ServerOptions& options_;
  const int signals_;
  const SharedCounters counters_;
  std::vector<UniqueFd> listeners_;
  Children children_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  if (options.workload == Workload::chat)
    usage_error(program_name(argv[0]), "--workload: chat needs the clients of other processes; use another workload");
  const UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, signals.get(), std::move(listener)};
  server.start_processes();
  announce_ready(endpoint);

  server.reap_until_signal();
  server.finish();
  print_totals(server.totals());
}
