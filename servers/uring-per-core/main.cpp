// Raw sockets; N threads, each of which accepts for itself (SO_REUSEPORT) and has an io_uring of its own; a connection
// is a chain of callbacks.
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/connections_per_thread.hpp"
#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "lib/server/threads.hpp"
#include "servers/_shared/inbox/inbox.hpp"
#include "servers/_shared/uring/acceptor.hpp"
#include "servers/_shared/uring/connection.hpp"
#include "servers/_shared/uring/ring.hpp"

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

class Client;

/// State shared by the clients of a thread. Its thread only.
struct Shard {
  Shard(Shared& all_share, std::size_t thread_number)
      : shared(all_share), number(thread_number), inbox(shared.inboxes[number]), io(shared.options.read_buffer) {}

  void broadcast(const SharedFrame& frame, const Client& sender);
  void take_mail();
  void pass_on();
  void serve_who_waited();

  Shared& shared;
  const std::size_t number;
  Inbox& inbox;
  Mail mail;
  RingIo io;
  Fifo<Client*> long_work;  // whose turn it is to burn CPU
  Roster<Client> clients;
  std::vector<SharedFrame> outgoing;  // here, in this turn
  int full_inboxes = 0;               // of other threads, which will tell when there is room
  std::vector<Client*> waiting_for_room;
  bool stop_requested = false;
};

/// One connection as a chain of callbacks: serve, then carry_out until every effect is done, then serve again. Where it
/// has to wait, the function ends; what must live from one callback to the next is a member.
class Client final : public UringConnection {
 public:
  Client(UniqueFd fd, Shard& shard)
      : UringConnection(std::move(fd), shard.io, shard.shared.options, shard.shared.counters), shard_(shard) {}

  /// Serves what has come until it has to wait.
  void serve() {
    while (member && !broken()) {
      if (shard_.full_inboxes > 0) return wait_for_room();
      waits_for_ = Awaited::input;
      if (!receive()) return;
      next_ = effects.begin();
      reply_pending_ = false;
      if (!carry_out()) return;
    }
    leave();
  }

  void burn() {
    if (!burn_cpu_unless([this] { return shard_.shared.grace.over(); }, to_burn_)) give_up();
    go_on();
  }

 private:
  enum class Awaited { input, sent, time, room };

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
          shard_.broadcast(effect.frame, *this);
          break;
        case Effect::Kind::wait:
          waits_for_ = Awaited::time;
          shard_.io.ring.ask_at(Ring::Clock::now() + effect.remaining(), timeout_);
          return false;
        case Effect::Kind::burn:
          waits_for_ = Awaited::time;
          to_burn_ = effect.duration;
          shard_.long_work.push(this);
          return false;
        case Effect::Kind::close:
          shard_.take_mail();  // frames that other threads sent before this are for
                               // this client, too
          member = false;
          reply_pending_ = true;
          break;
      }
    }
    // Back-pressure: a client that takes no replies is not served. Broadcasts
    // are no replies: they fill the outbox.
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
      shard_.io.ring.ask_to_cancel(timeout_.operation, calling_off_);
  }

  /// Back-pressure between threads: another thread has no room for the frames from here.
  void wait_for_room() {
    waits_for_ = Awaited::room;
    shard_.waiting_for_room.push_back(this);
  }

  void on_news() override {
    if (waits_for_ == Awaited::time && broken()) return call_off_wait();
    if (waits_for_ == Awaited::input || (waits_for_ == Awaited::sent && all_sent())) serve();
  }
  void on_left() override { shard_.clients.remove(*this); }

  Shard& shard_;
  Awaited waits_for_ = Awaited::input;
  decltype(effects.begin()) next_;
  bool reply_pending_ = false;  // replies, and they may not be sent yet
  std::chrono::nanoseconds to_burn_{0};
  Timeout timeout_{.operation = operation<&Client::on_time>(*this)};
  Operation calling_off_ = operation<&Client::on_time>(*this);
};

void Shard::broadcast(const SharedFrame& frame, const Client& sender) {
  clients.broadcast(frame, shared.options.audience == Audience::others ? &sender : nullptr);
  outgoing.push_back(frame);
}

/// After a turn: passes its frames on, once to each of the other threads.
void Shard::pass_on() {
  if (outgoing.empty()) return;
  for (Inbox& other : shared.inboxes)
    if (&other != &inbox && other.add(outgoing, inbox)) ++full_inboxes;
  outgoing.clear();
}

/// Takes what came from other threads.
void Shard::take_mail() {
  inbox.take(mail);
  for (const SharedFrame& frame : mail.frames) clients.broadcast(frame, nullptr);
  full_inboxes -= mail.room;
  if (mail.end) stop_requested = true;
  mail.clear();
}

void Shard::serve_who_waited() {
  if (full_inboxes > 0) return;
  for (Client* client : std::exchange(waiting_for_room, {})) client->serve();
}

/// A listener, a ring, and the connections that the kernel gave to that listener. After the constructor, its thread
/// only.
class Worker {
 public:
  Worker(Shared& shared, std::size_t number, UniqueFd listener)
      : shared_(shared),
        shard_(shared, number),
        acceptor_(shard_.io.ring, std::move(listener), [this](UniqueFd fd) { add(std::move(fd)); }) {}

  /// Returns after a shutdown signal, once all connections here are done or the grace is over.
  void run() {
    shard_.io.ring.enable();
    acceptor_.start();
    wait_for_mail();
    while (!shared_.grace.over() && (acceptor_.active() || !shard_.clients.empty())) turn();
    shard_.inbox.close();
    shard_.clients.clear();
  }

 private:
  /// A turn of the loop. One system call tells the kernel all that was asked for in the last turn, does it, and brings
  /// what has come of this and of what was asked for before; or waits until something does.
  void turn() {
    Ring& ring = shard_.io.ring;
    if (std::exchange(shard_.io.more_to_send, false)) {
      ring.submit();
    } else if (!shard_.long_work.empty()) {
      ring.submit_and_poll();
    } else {
      ring.submit_and_wait();
    }
    ring.dispatch();
    shard_.serve_who_waited();
    // One by one, so that the reply of one is on its way before the next
    // begins.
    if (!shard_.long_work.empty()) shard_.long_work.pop()->burn();
    if (std::exchange(shard_.stop_requested, false)) end();
    shard_.pass_on();
    shard_.clients.end_turn();
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    shared_.connections_per_thread.add(shard_.number);
    auto client = std::make_unique<Client>(std::move(fd), shard_);
    client->serve();
    shard_.clients.add(std::move(client));
  }

  /// The kernel says each time that another thread has put something into the empty inbox (multishot).
  void wait_for_mail() {
    shard_.io.ring.ask(
        mail_, [this](io_uring_sqe* entry) { io_uring_prep_poll_multishot(entry, shard_.inbox.wake_fd(), POLLIN); });
  }

  void on_mail(Completion) {
    shard_.take_mail();
    if (!mail_.in_flight()) wait_for_mail();
  }

  void end() {
    acceptor_.stop();
    shard_.clients.stop_receiving();
    shard_.io.ring.wake_at(shared_.grace.end());
  }

  Shared& shared_;
  Shard shard_;
  Acceptor acceptor_;
  Operation mail_ = operation<&Worker::on_mail>(*this);
};

/// The main thread: it starts the others, and ends them on a shutdown signal.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd first_listener) : shared_(options) {
    std::vector<UniqueFd> listeners;
    listeners.push_back(std::move(first_listener));
    while (listeners.size() < shared_.inboxes.size())
      listeners.push_back(listen_tcp_on_port_of(listeners.front(), options.backlog, false));
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
  UniqueFd listener = listen_tcp(options, false);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start_threads();
  announce_ready(endpoint);

  server.end_on_signal(signals);
  print_totals(server.totals(), ConnectionsPerThread::name, server.connections_per_thread().json());
}
