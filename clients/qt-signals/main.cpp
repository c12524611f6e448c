// Qt 6, signals and slots: the requests live in the application's own event loop; an instance is slots that are
// connected to the signals of its socket and its timers.
#define QT_NO_KEYWORDS  // `slots` is a name here
#include <QCoreApplication>
#include <QHostAddress>
#include <QHostInfo>
#include <QList>
#include <QNetworkProxy>
#include <QSocketNotifier>
#include <QTcpSocket>
#include <QTimer>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/descriptors.hpp"

namespace netdyno::client {
namespace {

/// Qt's timers count in whole milliseconds, in an int; never early.
std::chrono::milliseconds timer_span(Nanos span) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds{std::max<Nanos>(span, 0)});
  return std::min(whole, std::chrono::milliseconds{std::numeric_limits<int>::max()});
}

/// A timer that fires once, when it is due: Qt's default may be 5% off.
class Alarm : public QTimer {
 public:
  Alarm() {
    setSingleShot(true);
    setTimerType(Qt::PreciseTimer);
  }
  void start_after(Nanos span) { start(timer_span(span)); }
  void start_at(Nanos moment) { start_after(moment - load::now_ns()); }
};

Failure connect_failure_of(QAbstractSocket::SocketError error) {
  switch (error) {
    case QAbstractSocket::ConnectionRefusedError:
      return Failure::connect_refused;
    case QAbstractSocket::SocketTimeoutError:
      return Failure::connect_timed_out;
    default:
      return Failure::connect_other;
  }
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

  /// The load has started.
  void begin(std::uint64_t established, const load::Window& window) {
    application_.begin(established, window);
    wait();
  }

 private:
  void wait() { alarm_.start_at(application_.due()); }

  Application& application_;
  Alarm alarm_;
};

class Network;

/// One instance: resolve, connect, request, response, request, ...
class Instance : public QObject {
 public:
  Instance(Network& network, std::uint32_t id);

  void resolve();
  /// What became of the lookup, where this instance waits for it.
  void resolved(const QHostInfo& found);
  /// The load starts.
  void start() {
    if (stage_ == Stage::connected) request();
  }
  /// Nobody sends any more; who waits for a response waits on, and who has a connection keeps it.
  void end() {
    if (!waiting()) stage_ == Stage::connected ? rest() : drop();
  }
  /// Lets go of the connection, or of the attempt to get one.
  void drop();

  bool waiting() const { return caller_.waiting(); }

 private:
  enum class Stage { none, resolving, connecting, connected, resting };

  void connect_to_next();
  void on_connected();
  void on_ready_read();
  void on_error(QAbstractSocket::SocketError error);
  void on_deadline();
  void request();
  void write(std::string_view bytes);
  void fail(Failure failure);
  void finish();
  void rest();

  Network& network_;
  const ClientPlan& plan_;
  Caller caller_;
  QTcpSocket socket_;
  Alarm deadline_;  // of the stage that is under way; one for the name and the connect
  Alarm retry_;
  Alarm next_;                      // address: not before the socket has told all of the last one
  QList<QHostAddress> addresses_;   // that are still to be tried
  std::optional<Failure> failure_;  // of the first of them
  Stage stage_ = Stage::none;
};

/// All instances.
class Network {
 public:
  Network(const ClientPlan& plan, Journal& journal, Driver& driver)
      : plan_(plan), journal_(journal), driver_(driver), linger_(plan.load.linger) {
    for (std::uint32_t id = 0; id < plan.load.connections; ++id)
      instances_.push_back(std::make_unique<Instance>(*this, id));
    QObject::connect(&end_timer_, &QTimer::timeout, &end_timer_, [this] { end(); });
    QObject::connect(&linger_timer_, &QTimer::timeout, &linger_timer_, [this] { close(); });
  }

  void start() {
    for (const auto& instance : instances_) instance->resolve();
  }

  /// Ends the load early, and then closes with the last answer; ends the linger where that has begun.
  void stop() {
    linger_ = 0;
    over_ ? linger() : end();
  }

  /// getaddrinfo(3) cannot be broken off; Qt would wait for it at the end.
  bool still_resolving() const { return resolving_; }

  // What follows is for instances.

  /// Has the name looked up, for all instances that wait for it: Qt looks up a name once at a time, so ten slow lookups
  /// of the same name would add up.
  void resolve() {
    if (std::exchange(resolving_, true)) return;
    QHostInfo::lookupHost(QString::fromStdString(plan_.load.url.host), &end_timer_, [this](const QHostInfo& found) {
      resolving_ = false;
      for (const auto& instance : instances_) instance->resolved(found);
    });
  }

  const ClientPlan& plan() const { return plan_; }
  Journal& journal() { return journal_; }
  bool over() const { return over_; }
  std::array<char, 64 << 10>& buffer() { return buffer_; }

  /// An attempt has come to an end. With the last of the first attempts the load starts.
  void attempt_ended() {
    if (journal_.begun() || !journal_.settled()) return;
    journal_.begin();
    end_timer_.start_at(journal_.window().end);
    driver_.begin(journal_.figures().connections.established, journal_.window());
    for (const auto& instance : instances_) instance->start();
  }

  /// After the end: an instance has its last answer, or has given up.
  void one_less_waits() {
    --waiting_;
    linger();
  }

 private:
  /// Nobody sends any more.
  void end() {
    if (std::exchange(over_, true)) return;
    journal_.end();
    for (const auto& instance : instances_) waiting_ += instance->waiting();
    for (const auto& instance : instances_) instance->end();
    linger();
  }

  /// With the last answer there is nothing left to do but to keep the connections for a while.
  void linger() {
    if (waiting_ == 0) linger_timer_.start_after(linger_);
  }

  /// The application quits.
  void close() {
    for (const auto& instance : instances_) instance->drop();
    QCoreApplication::quit();
  }

  const ClientPlan& plan_;
  Journal& journal_;
  Driver& driver_;
  Alarm end_timer_;
  Alarm linger_timer_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::array<char, 64 << 10> buffer_{};  // for whoever reads
  std::uint32_t waiting_ = 0;
  Nanos linger_;
  bool resolving_ = false;
  bool over_ = false;
};

Instance::Instance(Network& network, std::uint32_t id)
    : network_(network), plan_(network.plan()), caller_(network.journal(), id) {
  socket_.setProxy(QNetworkProxy::NoProxy);
  connect(&socket_, &QTcpSocket::connected, this, &Instance::on_connected);
  connect(&socket_, &QTcpSocket::readyRead, this, &Instance::on_ready_read);
  connect(&socket_, &QTcpSocket::errorOccurred, this, &Instance::on_error);
  connect(&deadline_, &QTimer::timeout, this, &Instance::on_deadline);
  connect(&retry_, &QTimer::timeout, this, &Instance::resolve);
  connect(&next_, &QTimer::timeout, this, &Instance::connect_to_next);
}

void Instance::resolve() {
  stage_ = Stage::resolving;
  deadline_.start_after(plan_.load.connect_timeout);
  network_.resolve();
}

void Instance::resolved(const QHostInfo& found) {
  if (stage_ != Stage::resolving) return;
  addresses_ = found.addresses();
  if (addresses_.isEmpty()) return fail(Failure::resolve_failed);
  failure_.reset();
  stage_ = Stage::connecting;
  caller_.connecting();
  connect_to_next();
}

/// `localhost` is ::1 and 127.0.0.1, and a server listens at one of them.
void Instance::connect_to_next() {
  socket_.abort();
  socket_.connectToHost(addresses_.takeFirst(), plan_.load.url.port);
}

void Instance::on_connected() {
  stage_ = Stage::connected;
  deadline_.stop();
  socket_.setSocketOption(QAbstractSocket::LowDelayOption, plan_.load.nodelay ? 1 : 0);
  caller_.connected();
  network_.journal().begun() ? request() : network_.attempt_ended();
}

void Instance::request() {
  if (!caller_.may_send()) return;  // the end, or the timer of it, finds this instance idle
  const Caller::Request request = caller_.next();
  deadline_.start_after(plan_.load.timeout);
  if (plan_.load.write_mode == WriteMode::split) {
    write(request.header);
    socket_.flush();
    if (stage_ != Stage::connected) return;  // the flush has found the connection gone, and on_error has dropped it
    write(request.body);
    socket_.flush();
  } else {
    // Two calls of write() would do: the socket gathers what comes before the loop has its next turn.
    write(request.whole);
  }
}

void Instance::write(std::string_view bytes) { socket_.write(bytes.data(), static_cast<qint64>(bytes.size())); }

void Instance::on_ready_read() {
  auto& buffer = network_.buffer();
  while (stage_ == Stage::connected && socket_.bytesAvailable() > 0) {
    const qint64 n = socket_.read(buffer.data(), static_cast<qint64>(buffer.size()));
    if (n <= 0) return;  // on_error has heard why
    switch (caller_.receive({buffer.data(), static_cast<std::size_t>(n)})) {
      case Caller::Received::incomplete:
        break;
      case Caller::Received::broken:
        return fail(Failure::protocol);
      case Caller::Received::answered:
        network_.over() ? finish() : request();
        break;
    }
  }
}

void Instance::on_error(QAbstractSocket::SocketError error) {
  if (stage_ == Stage::connected) {
    // Qt says the same for a reset (QNativeSocketEngine reads an end there).
    return fail(error == QAbstractSocket::RemoteHostClosedError ? Failure::closed : Failure::reset);
  }
  if (stage_ != Stage::connecting) return;
  if (!failure_ || *failure_ == Failure::connect_other) failure_ = connect_failure_of(error);
  addresses_.isEmpty() ? fail(*failure_) : next_.start_after(0);
}

void Instance::on_deadline() {
  switch (stage_) {
    case Stage::resolving:
      return fail(Failure::resolve_failed);
    case Stage::connecting:
      return fail(Failure::connect_timed_out);
    default:
      return fail(Failure::response_timeout);
  }
}

/// Counts it, lets go of the connection and tries again a little later.
void Instance::fail(Failure failure) {
  caller_.failed(failure);
  drop();
  if (network_.over()) return network_.one_less_waits();
  retry_.start_after(plan_.retry_delay);
  network_.attempt_ended();
}

/// After the end: this instance has its last answer.
void Instance::finish() {
  rest();
  network_.one_less_waits();
}

/// Nothing is under way on the connection any more, which stays open. What the server does to it is no failure.
void Instance::rest() {
  stage_ = Stage::resting;
  deadline_.stop();
}

void Instance::drop() {
  stage_ = Stage::none;
  deadline_.stop();
  retry_.stop();
  next_.stop();
  socket_.abort();
}

}  // namespace
}  // namespace netdyno::client

int main(int argc, char** argv) {
  using namespace netdyno::client;
  const ClientPlan plan = parse_client_plan(argc, argv);
  netdyno::load::ensure_descriptors(plan.load);
  const netdyno::UniqueFd told_to_end = netdyno::termination_signals();
  const QCoreApplication loop{argc, argv};
  Journal journal{plan};
  Application application{plan, journal};
  Driver driver{application};
  Network network{plan, journal, driver};
  QSocketNotifier signalled{told_to_end.get(), QSocketNotifier::Read};
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
