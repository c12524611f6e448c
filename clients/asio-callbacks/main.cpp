// Boost.Asio, callback style: the library's clients (library/client.hpp) are chains of handlers; all of them run on one
// io_context with a thread of its own, and the application's loop goes on beside it.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "clients/asio-callbacks/library/client.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/connect/descriptors.hpp"
#include "loadgen/run.hpp"

namespace netdyno::client {
namespace {

namespace asio = boost::asio;
using asio_callbacks::Client;
using asio_callbacks::Server;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC in libstdc++, the clock of Nanos

Clock::time_point moment(Nanos nanos) { return Clock::time_point{std::chrono::nanoseconds{nanos}}; }

class Network;

/// One instance: resolve, connect, request, response, request, ... and again after a failure. On the network's thread.
class Instance {
 public:
  Instance(Network& network, std::uint32_t id);

  void connect() { client_.connect(); }
  /// The load starts.
  void start() {
    if (connected_ && !waiting()) request();
  }
  /// Stops sending; a pending response is still awaited, and a connection is kept.
  void end() {
    if (!waiting()) connected_ ? rest() : drop();
  }
  /// Lets go of the connection, or of the attempt to get one.
  void drop();

  bool waiting() const { return caller_.waiting(); }

 private:
  void on_connected();
  Received on_received(FrameView frame);
  void on_failed(const Error& error);
  void request();
  void finish();
  void rest() { resting_ = true; }

  Network& network_;
  const ClientPlan& plan_;
  Caller caller_;
  asio::steady_timer retry_;
  Client client_;
  bool connected_ = false;
  bool resting_ = false;  // what becomes of the connection is no failure
};

/// All instances, and the thread that they run on.
class Network {
 public:
  /// Callbacks to the application, on the network's thread.
  struct Listener {
    std::function<void(std::uint64_t established)> connected;
    std::function<void(load::Window window)> begun;
  };

  Network(const ClientPlan& plan, Journal& journal, Listener listener)
      : plan_(plan),
        journal_(journal),
        listener_(std::move(listener)),
        io_(1),
        timer_(io_),
        start_timer_(io_),
        stdin_(io_),
        server_(io_, plan.load.url.host, plan.load.url.port),
        linger_(plan.load.linger) {
    for (std::uint32_t id = 0; id < plan.load.connections; ++id)
      instances_.push_back(std::make_unique<Instance>(*this, id));
  }

  /// The body of the thread. Returns when the last answer is in, or not waited for any more, and the connections are
  /// closed.
  void run() {
    for (const auto& instance : instances_) instance->connect();
    io_.run();
  }

  /// Any thread: ends the load early, and then closes with the last answer; ends the linger where that has begun.
  void stop() {
    asio::post(io_, [this] {
      linger_ = 0;
      over_ ? linger() : end();
    });
  }

  /// getaddrinfo(3) cannot be broken off; the io_context would wait for it when it is destroyed.
  bool still_resolving() const { return server_.is_resolving(); }

  // What follows is for instances.

  asio::io_context& io() { return io_; }
  Server& server() { return server_; }
  const ClientPlan& plan() const { return plan_; }
  Journal& journal() { return journal_; }
  bool over() const { return over_; }

  /// An attempt has ended. After the last of the first attempts the load starts, at once or on "go" (--await-go).
  void attempt_ended() {
    if (journal_.begun() || !journal_.settled() || std::exchange(settled_, true)) return;
    listener_.connected(journal_.figures().connections.established);
    if (!plan_.load.await_go) return begin(load::now_ns());
    stdin_.assign(dup(STDIN_FILENO));
    stdin_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (!error && !over_) begin(load::wait_for_go());
    });
  }

  /// After the end: an instance has its last answer, or has given up.
  void note_finished() {
    --waiting_;
    linger();
  }

 private:
  void begin(Nanos start_time) {
    journal_.begin(start_time);
    timer_.expires_at(moment(journal_.window().end));
    timer_.async_wait([this](const error_code& error) {
      if (!error) end();
    });
    listener_.begun(journal_.window());
    if (start_time <= load::now_ns()) return start();
    start_timer_.expires_at(moment(start_time));
    start_timer_.async_wait([this](const error_code& error) {
      if (!error && !over_) start();
    });
  }

  void start() {
    for (const auto& instance : instances_) instance->start();
  }

  void end() {
    if (std::exchange(over_, true)) return;
    journal_.end();
    for (const auto& instance : instances_) waiting_ += instance->waiting();
    for (const auto& instance : instances_) instance->end();
    linger();
  }

  /// With the last answer there is nothing left to do but to keep the connections for a while.
  void linger() {
    if (waiting_ > 0) return;
    timer_.expires_after(std::chrono::nanoseconds{linger_});
    timer_.async_wait([this](const error_code& error) {
      if (!error) close();
    });
  }

  void close() {
    for (const auto& instance : instances_) instance->drop();
    io_.stop();
  }

  const ClientPlan& plan_;
  Journal& journal_;
  Listener listener_;
  asio::io_context io_;
  asio::steady_timer timer_;  // of the end, then of the linger
  asio::steady_timer start_timer_;
  asio::posix::stream_descriptor stdin_;
  Server server_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::uint32_t waiting_ = 0;
  Nanos linger_;
  bool settled_ = false;
  bool over_ = false;
};

Instance::Instance(Network& network, std::uint32_t id)
    : network_(network),
      plan_(network.plan()),
      caller_(network.journal(), id),
      retry_(network.io()),
      client_(network.server(), library_options(plan_),
              {.resolved = [this] { caller_.connecting(); },
               .connected = [this] { on_connected(); },
               .received = [this](FrameView frame) { return on_received(frame); },
               .failed = [this](const Error& error) { on_failed(error); }}) {}

void Instance::on_connected() {
  connected_ = true;
  caller_.connected();
  network_.journal().begun() ? request() : network_.attempt_ended();
}

void Instance::request() {
  if (caller_.may_send()) client_.request(caller_.next());  // or the end, or the timer of it, finds this instance idle
}

Received Instance::on_received(FrameView frame) {
  const Received received = caller_.receive(frame.whole);
  if (received == Received::answered) network_.over() ? finish() : request();
  return received;
}

/// Counts it, and tries again a little later.
void Instance::on_failed(const Error& error) {
  if (resting_) return;
  connected_ = false;
  caller_.failed(failure_of(error), error.stage == Stage::connect ? error.code : 0);
  if (network_.over()) return network_.note_finished();
  retry_.expires_after(std::chrono::nanoseconds{plan_.retry_delay});
  retry_.async_wait([this](const error_code& cancelled) {
    if (!cancelled && !network_.over()) connect();
  });
  network_.attempt_ended();
}

/// After the end: this instance has its last answer, and keeps its connection.
void Instance::finish() {
  rest();
  network_.note_finished();
}

void Instance::drop() {
  connected_ = false;
  retry_.cancel();
  client_.close();
}

/// The application's loop, on the main thread: its timer, and the signal to end.
class Loop {
 public:
  explicit Loop(Application& application) : application_(application) { wait(); }

  void run() { io_.run(); }
  template <typename Handler>
  void on_stop_signal(Handler handler) {
    for (const int number : ending_signals()) signals_.add(number);
    signals_.async_wait([handler](const error_code& error, int) {
      if (!error) handler();
    });
  }

  /// Any thread.
  void connected(std::uint64_t established) {
    asio::post(io_, [=, this] { application_.connected(established); });
  }
  /// Any thread.
  void begin(const load::Window& window) {
    asio::post(io_, [=, this] {
      application_.begin(window);
      wait();
    });
  }
  /// Any thread.
  void stop() {
    asio::post(io_, [this] { io_.stop(); });  // behind what was posted before
  }

 private:
  void wait() {
    timer_.expires_at(moment(application_.due()));
    timer_.async_wait([this](const error_code& error) {
      if (error) return;
      application_.wake();
      wait();
    });
  }

  Application& application_;
  asio::io_context io_{1};
  asio::steady_timer timer_{io_};
  asio::signal_set signals_{io_};
};

}  // namespace
}  // namespace netdyno::client

int main(int argc, char** argv) {
  using namespace netdyno::client;
  const ClientPlan plan = parse_client_plan(argc, argv);
  netdyno::load::ensure_descriptors(plan.load);
  std::signal(SIGPIPE, SIG_IGN);
  Journal journal{plan};
  Application application{plan, journal};
  Loop loop{application};
  Network network{
      plan,
      journal,
      {[&loop](auto established) { loop.connected(established); }, [&loop](auto window) { loop.begin(window); }}};
  loop.on_stop_signal([&network] { network.stop(); });

  std::jthread thread{[&] {
    network.run();
    loop.stop();
  }};
  loop.run();
  thread.join();
  const int code = application.finish();
  if (network.still_resolving()) std::_Exit(code);
  return code;
}
