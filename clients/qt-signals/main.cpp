// Qt 6, signals and slots: the library's clients (library/client.hpp) live in the application's own event loop; they
// are slots that are connected to the signals of their sockets and timers.
#define QT_NO_KEYWORDS  // `slots` is a name here
#include <unistd.h>

#include <QCoreApplication>
#include <QSocketNotifier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "clients/qt-signals/library/client.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/connect/descriptors.hpp"
#include "loadgen/run.hpp"

namespace netdyno::client {
namespace {

using qt_signals::Alarm;
using qt_signals::Client;
using qt_signals::Server;

/// At a moment, or at once where it is over.
void start_at(Alarm& alarm, Nanos moment) {
  alarm.start_after(std::chrono::nanoseconds{moment == load::never ? moment : moment - load::now_ns()});
}

/// The timer that drives the application.
class Driver {
 public:
  explicit Driver(Application& application) : application_(application) {
    QObject::connect(&alarm_, &QTimer::timeout, &alarm_, [this] {
      application_.wake();
      wait();
    });
    wait();
  }

  /// The first attempts have ended.
  void connected(std::uint64_t established) { application_.connected(established); }
  /// The load starts.
  void begin(const load::Window& window) {
    application_.begin(window);
    wait();
  }

 private:
  void wait() { start_at(alarm_, application_.due()); }

  Application& application_;
  Alarm alarm_;
};

class Network;

/// One instance: resolve, connect, request, response, request, ... and again after a failure.
class Instance {
 public:
  Instance(Network& network, std::uint32_t id);

  void connect() { client_.connect_to_server(); }
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
  Alarm retry_;
  Client client_;
  bool connected_ = false;
  bool resting_ = false;  // what becomes of the connection is no failure
};

/// All instances.
class Network {
 public:
  Network(const ClientPlan& plan, Journal& journal, Driver& driver)
      : plan_(plan),
        journal_(journal),
        driver_(driver),
        server_(plan.load.url.host, plan.load.url.port),
        linger_(plan.load.linger) {
    for (std::uint32_t id = 0; id < plan.load.connections; ++id)
      instances_.push_back(std::make_unique<Instance>(*this, id));
    QObject::connect(&end_timer_, &QTimer::timeout, &end_timer_, [this] { end(); });
    QObject::connect(&start_timer_, &QTimer::timeout, &start_timer_, [this] {
      if (!over_) start_instances();
    });
    QObject::connect(&linger_timer_, &QTimer::timeout, &linger_timer_, [this] { close(); });
  }

  void start() {
    for (const auto& instance : instances_) instance->connect();
  }

  /// Ends the load early, and then closes with the last answer; ends the linger where that has begun.
  void stop() {
    linger_ = 0;
    over_ ? linger() : end();
  }

  /// getaddrinfo(3) cannot be broken off; Qt would wait for it at the end.
  bool still_resolving() const { return server_.is_resolving(); }

  // What follows is for instances.

  const ClientPlan& plan() const { return plan_; }
  Journal& journal() { return journal_; }
  bool over() const { return over_; }
  Server& server() { return server_; }

  /// An attempt has ended. After the last of the first attempts the load starts, at once or on "go" (--await-go).
  void attempt_ended() {
    if (journal_.begun() || !journal_.settled() || std::exchange(settled_, true)) return;
    driver_.connected(journal_.figures().connections.established);
    if (!plan_.load.await_go) return begin(load::now_ns());
    stdin_ = std::make_unique<QSocketNotifier>(STDIN_FILENO, QSocketNotifier::Read);
    QObject::connect(stdin_.get(), &QSocketNotifier::activated, stdin_.get(), [this] {
      stdin_->setEnabled(false);
      if (!over_) begin(load::wait_for_go());
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
    start_at(end_timer_, journal_.window().end);
    driver_.begin(journal_.window());
    if (start_time <= load::now_ns()) return start_instances();
    start_at(start_timer_, start_time);
  }

  void start_instances() {
    for (const auto& instance : instances_) instance->start();
  }

  /// Stops all sending.
  void end() {
    if (std::exchange(over_, true)) return;
    journal_.end();
    for (const auto& instance : instances_) waiting_ += instance->waiting();
    for (const auto& instance : instances_) instance->end();
    linger();
  }

  /// With the last answer there is nothing left to do but to keep the connections for a while.
  void linger() {
    if (waiting_ == 0) linger_timer_.start_after(std::chrono::nanoseconds{linger_});
  }

  /// The application quits.
  void close() {
    for (const auto& instance : instances_) instance->drop();
    QCoreApplication::quit();
  }

  const ClientPlan& plan_;
  Journal& journal_;
  Driver& driver_;
  Server server_;
  std::unique_ptr<QSocketNotifier> stdin_;
  Alarm start_timer_;
  Alarm end_timer_;
  Alarm linger_timer_;
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
      client_(network.server(), library_options(plan_),
              {.resolved = [this] { caller_.connecting(); },
               .connected = [this] { on_connected(); },
               .received = [this](FrameView frame) { return on_received(frame); },
               .failed = [this](const Error& error) { on_failed(error); }}) {
  QObject::connect(&retry_, &QTimer::timeout, &retry_, [this] { connect(); });
}

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
  caller_.failed(failure_of(error));
  if (network_.over()) return network_.note_finished();
  retry_.start_after(std::chrono::nanoseconds{plan_.retry_delay});
  network_.attempt_ended();
}

/// After the end: this instance has its last answer, and keeps its connection.
void Instance::finish() {
  rest();
  network_.note_finished();
}

void Instance::drop() {
  connected_ = false;
  retry_.stop();
  client_.close();
}

}  // namespace
}  // namespace netdyno::client

int main(int argc, char** argv) {
  using namespace netdyno::client;
  const ClientPlan plan = parse_client_plan(argc, argv);
  netdyno::load::ensure_descriptors(plan.load);
  const netdyno::UniqueFd stop_signal = netdyno::termination_signals();
  const QCoreApplication loop{argc, argv};
  Journal journal{plan};
  Application application{plan, journal};
  Driver driver{application};
  Network network{plan, journal, driver};
  QSocketNotifier signalled{stop_signal.get(), QSocketNotifier::Read};
  QObject::connect(&signalled, &QSocketNotifier::activated, &signalled, [&] {
    signalled.setEnabled(false);
    network.stop();
  });

  network.start();
  QCoreApplication::exec();
  const int code = application.finish();
  if (network.still_resolving()) std::_Exit(code);
  return code;
}
