// Raw sockets and an own io_uring; a connection is a chain of callbacks, all on one thread.
#include <poll.h>

#include <chrono>
#include <memory>
#include <utility>

#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "servers/_shared/uring/acceptor.hpp"
#include "servers/_shared/uring/connection.hpp"
#include "servers/_shared/uring/ring.hpp"

namespace netdyno {
namespace {

class Client;

/// State shared by all clients, as there is one thread.
struct Shared {
  Shared(const ServerOptions& server_options, UniqueFd signal_fd)
      : options(server_options), signals(std::move(signal_fd)), io(options.read_buffer) {}

  const ServerOptions& options;
  UniqueFd signals;
  Counters counters;
  RingIo io;
  Fifo<Client*> long_work;  // whose turn it is to burn CPU
  Roster<Client> clients;
  Grace grace;
};

/// One connection as a chain of callbacks: serve, then carry_out until every effect is done, then serve again. Where it
/// has to wait, the function ends; what must live from one callback to the next is a member.
class Client final : public UringConnection {
 public:
  Client(UniqueFd fd, Shared& shared)
      : UringConnection(std::move(fd), shared.io, shared.options, shared.counters), shared_(shared) {}

  /// Serves what has come until it has to wait.
  void serve() {
    while (member && !broken()) {
      waits_for_ = Awaited::input;
      if (!receive()) return;
      next_ = effects.begin();
      reply_pending_ = false;
      if (!carry_out()) return;
    }
    leave();
  }

  void burn() {
    if (!burn_cpu_unless_stopped(shared_.signals.get(), shared_.grace, to_burn_)) give_up();
    go_on();
  }

 private:
  enum class Awaited { input, sent, time };

  /// Carries out the effects from next_ on. False when one takes time, or replies are not sent yet: a callback goes on.
  bool carry_out() {
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
          waits_for_ = Awaited::time;
          shared_.io.ring.ask_at(Ring::Clock::now() + effect.remaining(), timeout_);
          return false;
        case Effect::Kind::burn:
          waits_for_ = Awaited::time;
          to_burn_ = effect.duration;
          shared_.long_work.push(this);
          return false;
        case Effect::Kind::close:
          member = false;
          reply_pending_ = true;
          break;
      }
    }
    // Back-pressure: a client that takes no replies is not served. Broadcasts are no replies: they fill the outbox.
    waits_for_ = Awaited::sent;
    return !reply_pending_ || all_sent();
  }

  void go_on() {
    if (carry_out()) serve();
  }
  /// The time has passed, or the wait was called off; the kernel has let go of both operations.
  void on_time(Completion) {
    if (!timeout_.operation.in_flight() && !calling_off_.in_flight()) go_on();
  }

  /// The peer has reset.
  void call_off_wait() {
    if (timeout_.operation.in_flight() && !calling_off_.in_flight())
      shared_.io.ring.ask_to_cancel(timeout_.operation, calling_off_);
  }

  void on_news() override {
    if (waits_for_ == Awaited::time && broken()) return call_off_wait();
    if (waits_for_ == Awaited::input || (waits_for_ == Awaited::sent && all_sent())) serve();
  }
  void on_left() override { shared_.clients.remove(*this); }

  Shared& shared_;
  Awaited waits_for_ = Awaited::input;
  decltype(effects.begin()) next_;
  bool reply_pending_ = false;  // replies, and they may not be sent yet
  std::chrono::nanoseconds to_burn_{0};
  Timeout timeout_{.operation = operation<&Client::on_time>(*this)};
  Operation calling_off_ = operation<&Client::on_time>(*this);
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : shared_{options, std::move(signals)},
        acceptor_(shared_.io.ring, std::move(listener), [this](UniqueFd fd) { add(std::move(fd)); }) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    Ring& ring = shared_.io.ring;
    ring.enable();
    acceptor_.start();
    ring.ask(stop_signal_,
             [this](io_uring_sqe* entry) { io_uring_prep_poll_add(entry, shared_.signals.get(), POLLIN); });
    while (!shared_.grace.over() && (acceptor_.active() || !shared_.clients.empty())) turn();
    shared_.clients.clear();
  }

  const Counters& counters() const { return shared_.counters; }

 private:
  /// A turn of the loop. One system call tells the kernel all that was asked for in the last turn, does it, and brings
  /// what has come of this and of what was asked for before; or waits until something does.
  void turn() {
    Ring& ring = shared_.io.ring;
    if (std::exchange(shared_.io.more_to_send, false)) {
      ring.submit();
    } else if (!shared_.long_work.empty()) {
      ring.submit_and_poll();
    } else {
      ring.submit_and_wait();
    }
    ring.dispatch();
    // One by one, so that the reply of one is on its way before the next begins.
    if (!shared_.long_work.empty()) shared_.long_work.pop()->burn();
    shared_.clients.end_turn();
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_);
    client->serve();
    shared_.clients.add(std::move(client));
  }

  void end(Completion) {
    shared_.grace.start();
    acceptor_.stop();
    shared_.clients.stop_receiving();
    shared_.io.ring.wake_at(shared_.grace.end());
  }

  Shared shared_;
  Acceptor acceptor_;
  Operation stop_signal_ = operation<&Server::end>(*this);
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, false);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
