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
#include <thread>
#include <utility>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/network.hpp"
#include "clients/_shared/plan.hpp"
#include "clients/asio-callbacks/library/client.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/connect/descriptors.hpp"

namespace netdyno::client {
namespace {

namespace asio = boost::asio;
using asio_callbacks::Server;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC in libstdc++, the clock of Nanos

Clock::time_point moment(Nanos nanos) { return Clock::time_point{std::chrono::nanoseconds{nanos}}; }

/// The application's loop, on the main thread: its timer, and the signal to end.
class ApplicationLoop {
 public:
  explicit ApplicationLoop(Application& application) : application_(application) { wait(); }

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

/// The network's loop, on a thread of its own.
class NetworkLoop {
 public:
  using Client = asio_callbacks::Client;
  class Timer {
   public:
    Timer(NetworkLoop& loop, std::function<void()> handler) : timer_(loop.io_), handler_(std::move(handler)) {}
    void start_at(Nanos nanos) {
      timer_.expires_at(moment(nanos));
      timer_.async_wait([this](const error_code& error) {
        if (!error) handler_();
      });
    }
    void stop() { timer_.cancel(); }

   private:
    asio::steady_timer timer_;
    std::function<void()> handler_;
  };

  NetworkLoop(const ClientPlan& plan, ApplicationLoop& application)
      : application_(application), server_(io_, plan.load.url.host, plan.load.url.port) {}

  void run() { io_.run(); }
  /// Any thread: the handler runs on that of the loop.
  template <typename Handler>
  void post(Handler handler) {
    asio::post(io_, handler);
  }
  /// getaddrinfo(3) cannot be broken off; the io_context would wait for it when it is destroyed.
  bool still_resolving() const { return server_.is_resolving(); }

  Server& server() { return server_; }
  void connected(std::uint64_t established) { application_.connected(established); }
  void begin(const load::Window& window) { application_.begin(window); }
  template <typename Handler>
  void await_go(Handler handler) {
    stdin_.assign(dup(STDIN_FILENO));
    stdin_.async_wait(asio::posix::stream_descriptor::wait_read, [handler](const error_code& error) {
      if (!error) handler();
    });
  }
  void quit() { io_.stop(); }

 private:
  ApplicationLoop& application_;
  asio::io_context io_{1};
  asio::posix::stream_descriptor stdin_{io_};
  Server server_;
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
  ApplicationLoop application_loop{application};
  NetworkLoop network_loop{plan, application_loop};
  Network network{plan, journal, network_loop};
  application_loop.on_stop_signal([&] { network_loop.post([&] { network.stop(); }); });

  std::jthread thread{[&] {
    network.connect();
    network_loop.run();
    application_loop.stop();
  }};
  application_loop.run();
  thread.join();
  const int code = application.finish();
  if (network_loop.still_resolving()) std::_Exit(code);
  return code;
}
