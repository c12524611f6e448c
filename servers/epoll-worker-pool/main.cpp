// Raw non-blocking sockets and an own epoll loop of callbacks on one thread, which hands whatever takes long to worker
// threads, over a bounded queue.
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lib/server/fifo.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/roster.hpp"
#include "lib/server/threads.hpp"
#include "servers/_shared/epoll/callback.hpp"
#include "servers/_shared/epoll/connection.hpp"
#include "servers/_shared/epoll/loop.hpp"

namespace netdyno {
namespace {

class Client;

/// A service time that one worker spends. While it does, the client is not destroyed: it waits for the job's end.
struct Job {
  Client* client = nullptr;
  int fd = -1;
  Effect::Kind kind = Effect::Kind::wait;
  std::chrono::nanoseconds duration{0};
  bool completed = false;  // else the client reset, or the grace was over
};

/// The worker threads, the queue before them, and what they have done. Loop's thread, but where it says otherwise.
class Workers final : private Watched {
 public:
  /// A pool for work that blocks has more threads than cores, so that waiting requests leave no core idle. --threads of
  /// them are started with the program, the others when a job comes and no worker is idle.
  static constexpr std::size_t workers_per_thread = 16;
  /// So many jobs may wait for a worker. Where more come, no client is read until there is room.
  static constexpr std::size_t queued_per_worker = 16;

  Workers(Loop<Callback>& loop, const Grace& grace, int threads)
      : loop_(loop),
        grace_(grace),
        first_workers_(static_cast<std::size_t>(threads)),
        most_workers_(first_workers_ * workers_per_thread),
        most_jobs_(most_workers_ * (1 + queued_per_worker)),
        wake_(eventfd(0, EFD_CLOEXEC)) {
    if (!wake_) die("eventfd: no descriptor left; raise ulimit -n");
    // An edge follows each write, so it is never read; the count of an eventfd(2) overflows only after 2^64 writes.
    if (!loop_.poller().watch(wake_.get(), EPOLLIN | EPOLLET, *this)) die("epoll_ctl: no room to watch an eventfd");
  }

  void start_threads() {
    start_or_die([this] {
      while (threads_.size() < first_workers_) start_thread();
    });
  }

  bool has_room() const { return jobs_ < most_jobs_; }
  void when_room(Callback next) { waiting_for_room_.push(next); }

  /// To be called only while there is room. Client::on_done follows.
  void add(const Job& job) {
    ++jobs_;
    bool all_busy = false;
    {
      const std::lock_guard lock{mutex_};
      queue_.push(job);
      all_busy = queue_.size() > idle_workers_;
    }
    queued_or_ending_.notify_one();
    if (all_busy && threads_.size() < most_workers_) try_to_start_thread();
  }

  bool have_jobs() const { return jobs_ > 0; }

  /// To be called when they have no jobs: waits for the threads.
  void end_threads() {
    {
      const std::lock_guard lock{mutex_};
      ending_ = true;
    }
    queued_or_ending_.notify_all();
    threads_.clear();
  }

 private:
  void on_events(std::uint32_t) override;
  void wake_waiting();

  void start_thread() {
    threads_.emplace_back([this]() noexcept { work(); });
  }

  void try_to_start_thread() {
    try {
      start_thread();
    } catch (const std::system_error&) {  // no more threads to be had: those that there are go on
    }
  }

  /// A worker's thread.
  void work() {
    std::unique_lock lock{mutex_};
    while (true) {
      ++idle_workers_;
      queued_or_ending_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      --idle_workers_;
      if (queue_.empty()) return;
      Job job = queue_.pop();
      lock.unlock();
      job.completed = spend(job);
      lock.lock();
      done_.push_back(job);
      if (done_.size() == 1) eventfd_write(wake_.get(), 1);
    }
  }

  /// A worker's thread, which this blocks. False when the client reset or the grace was over.
  bool spend(const Job& job) const {
    if (job.kind == Effect::Kind::wait) return wait_unless_reset(job.fd, job.duration);
    return burn_cpu_unless([this] { return grace_.over(); }, job.duration);
  }

  Loop<Callback>& loop_;
  const Grace& grace_;
  const std::size_t first_workers_;
  const std::size_t most_workers_;
  const std::size_t most_jobs_;
  std::size_t jobs_ = 0;  // queued, or with a worker
  Fifo<Callback> waiting_for_room_;
  std::vector<Job> taken_;
  const UniqueFd wake_;
  std::mutex mutex_;
  std::condition_variable queued_or_ending_;
  Fifo<Job> queue_;               // guarded by mutex_
  std::vector<Job> done_;         // guarded by mutex_
  bool ending_ = false;           // guarded by mutex_
  std::size_t idle_workers_ = 0;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

/// State shared by all clients, on the loop's thread.
struct Shared {
  explicit Shared(const ServerOptions& server_options)
      : options(server_options), workers(loop, grace, options.threads), buffer(options.read_buffer) {}

  const ServerOptions& options;
  Counters counters;
  Loop<Callback> loop;
  Grace grace;
  Workers workers;
  std::vector<char> buffer;  // what a read brought is given to the session before the next callback
  Roster<Client> clients;
};

/// One connection as a chain of callbacks: on_input, then carry_out until every effect is done, then go_on, which waits
/// for input again. What must live from one callback to the next is a member.
class Client final : public EpollConnection<Callback> {
 public:
  Client(UniqueFd fd, Shared& shared)
      : EpollConnection(std::move(fd), shared.loop, shared.options, shared.counters), shared_(shared) {}

  void start() { when_readable(callback<&Client::on_input>(*this)); }

  /// Its job has ended.
  void on_done(bool completed) {
    if (!completed) give_up();
    shared_.loop.call_soon(callback<&Client::carry_out>(*this));
  }

 private:
  /// While the workers' queue is full, no client is read: this is how the bound reaches the senders.
  void on_input() {
    if (!shared_.workers.has_room()) return shared_.workers.when_room(callback<&Client::on_input>(*this));
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
        case Effect::Kind::burn:
          job_ = {this, fd(), effect.kind, effect.remaining()};
          return hand_over();
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

  void hand_over() {
    if (!shared_.workers.has_room()) return shared_.workers.when_room(callback<&Client::hand_over>(*this));
    shared_.workers.add(job_);
  }

  void go_on() {
    if (member && !broken()) return start();
    if (!broken()) end_stream(fd());
    shared_.clients.remove(*this);
  }

  Shared& shared_;
  decltype(effects.begin()) next_;
  bool reply_pending_ = false;  // replies, and they may not be sent yet
  Job job_;
};

void Workers::on_events(std::uint32_t) {
  {
    const std::lock_guard lock{mutex_};
    taken_.swap(done_);
  }
  jobs_ -= taken_.size();
  for (const Job& job : taken_) job.client->on_done(job.completed);
  taken_.clear();
  wake_waiting();
}

/// Wakes as many of the clients that wait for room as there is room for, and checks again once they have run. Some
/// bring no job: the others would wait for the end of a later one, and for ever where none comes.
void Workers::wake_waiting() {
  for (std::size_t room = most_jobs_ - jobs_; room > 0 && !waiting_for_room_.empty(); --room)
    loop_.call_soon(waiting_for_room_.pop());
  if (has_room() && !waiting_for_room_.empty()) loop_.call_soon(callback<&Workers::wake_waiting>(*this));
}

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : shared_(options),
        listener_(std::move(listener)),
        signals_(std::move(signals)),
        acceptable_(shared_.loop, listener_.get()),
        stop_signal_(shared_.loop, signals_.get()) {}

  void start_threads() { shared_.workers.start_threads(); }

  /// Returns after a shutdown signal, once all connections are done or the grace is over: false when workers
  /// are still blocked in a service time then.
  bool run() {
    accept_all();
    stop_signal_.when_readable(callback<&Server::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    if (shared_.workers.have_jobs()) return false;
    shared_.workers.end_threads();
    shared_.clients.clear();
    return true;
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
  UniqueFd signals_;
  Gate<Callback> acceptable_;
  Gate<Callback> stop_signal_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  server.start_threads();
  announce_ready(endpoint);

  const bool all_done = server.run();
  print_totals(server.counters().totals());
  if (!all_done) std::_Exit(0);  // workers are still blocked in a service time; the totals are out
}
