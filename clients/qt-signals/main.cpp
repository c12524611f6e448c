// Qt 6, signals and slots: the library's clients (library/client.hpp) live in the application's own event loop; they
// are slots that are connected to the signals of their sockets and timers.
#define QT_NO_KEYWORDS  // `slots` is a name here
#include <unistd.h>

#include <QCoreApplication>
#include <QSocketNotifier>
#include <chrono>
#include <cstdlib>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/network.hpp"
#include "clients/_shared/plan.hpp"
#include "clients/qt-signals/library/client.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/connect/descriptors.hpp"

namespace netdyno::client {
namespace {

/// Calls the handler once, when there is something to read.
template <typename Handler>
void call_when_readable(int fd, Handler handler) {
  auto* const notifier = new QSocketNotifier{fd, QSocketNotifier::Read, QCoreApplication::instance()};
  QObject::connect(notifier, &QSocketNotifier::activated, notifier, [=] {
    notifier->setEnabled(false);
    handler();
  });
}

/// The application's loop, which is the network's, too; and the timer that drives the application.
class Loop {
 public:
  struct Client : qt_signals::Client {
    using qt_signals::Client::Client;
    void connect() { connect_to_server(); }
  };
  class Timer : public qt_signals::Alarm {
   public:
    template <typename Handler>
    Timer(Loop&, Handler handler) {
      QObject::connect(this, &QTimer::timeout, this, handler);
    }
    /// At the moment, or at once where it is over.
    void start_at(Nanos moment) { start_after(std::chrono::nanoseconds{moment - load::now_ns()}); }
  };

  Loop(const ClientPlan& plan, Application& application)
      : application_(application), server_(plan.load.url.host, plan.load.url.port) {
    wait();
  }

  /// getaddrinfo(3) cannot be broken off; Qt would wait for it at the end.
  bool still_resolving() const { return server_.is_resolving(); }

  qt_signals::Server& server() { return server_; }
  void connected(std::uint64_t established) { application_.connected(established); }
  void begin(const load::Window& window) {
    application_.begin(window);
    wait();
  }
  template <typename Handler>
  void await_go(Handler handler) {
    call_when_readable(STDIN_FILENO, handler);
  }
  void quit() { QCoreApplication::quit(); }

 private:
  void wait() { timer_.start_at(application_.due()); }

  Application& application_;
  qt_signals::Server server_;
  Timer timer_{*this, [this] {
                 application_.wake();
                 wait();
               }};
};

}  // namespace
}  // namespace netdyno::client

int main(int argc, char** argv) {
  using namespace netdyno::client;
  const ClientPlan plan = parse_client_plan(argc, argv);
  netdyno::load::ensure_descriptors(plan.load);
  const netdyno::UniqueFd stop_signal = netdyno::termination_signals();
  const QCoreApplication core{argc, argv};
  Journal journal{plan};
  Application application{plan, journal};
  Loop loop{plan, application};
  Network network{plan, journal, loop};
  call_when_readable(stop_signal.get(), [&] { network.stop(); });

  network.connect();
  QCoreApplication::exec();
  const int code = application.finish();
  if (loop.still_resolving()) std::_Exit(code);
  return code;
}
