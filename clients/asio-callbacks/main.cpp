// Boost.Asio, callback style: an instance is a chain of handlers; all of them run on one io_context with a thread of
// its own, and the application's loop goes on beside it.
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <concepts>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/_shared/application.hpp"
#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "lib/protocol/framing.hpp"
#include "loadgen/descriptors.hpp"

namespace netdyno::client {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC in libstdc++, the clock of Nanos

/// Hands the kernel all that is left at once, where asio::transfer_all stops at 64 KiB: a write is a system call.
constexpr auto at_once = [](const error_code& error, std::size_t) {
  return error ? 0 : std::numeric_limits<std::size_t>::max();
};

Clock::time_point moment(Nanos at) { return Clock::time_point{std::chrono::nanoseconds{at}}; }

class Network;

/// One instance: resolve, connect, request, response, request, ... On the network's thread.
class Instance {
 public:
  Instance(Network& network, std::uint32_t id);

  void resolve();
  /// What became of the lookup that this instance waits for.
  void resolved(const error_code& error, const tcp::resolver::results_type& found);
  /// The load starts.
  void start() {
    if (connected_) request();
  }
  /// Nobody sends any more; who waits for a response waits on, and who has a connection keeps it.
  void end() {
    if (!waiting()) connected_ ? rest() : drop();
  }
  /// Lets go of the connection, or of the attempt to get one.
  void drop();

  bool waiting() const { return caller_.waiting(); }
  bool resolving() const { return resolving_; }

 private:
  void connect(const tcp::resolver::results_type& addresses);
  void request();
  void write_body(std::string_view body);
  void read_header();
  void read_body();
  void arm(Nanos timeout, Failure failure) { arm_at(Clock::now() + std::chrono::nanoseconds{timeout}, failure); }
  void arm_at(Clock::time_point end, Failure failure);
  void fail(Failure failure, int errno_of_connect = 0);
  void finish();
  void rest();

  static Failure stream_failure(const error_code& error) {
    return error == asio::error::eof ? Failure::closed : Failure::reset;
  }

  /// A handler that does nothing when its attempt was given up before it came. It takes what the handler takes and
  /// nothing else: of the overloads of async_connect, that one counts.
  template <typename Handler>
  auto of_this_attempt(Handler handler) {
    return [ this, attempt = attempt_,
             handler ](const auto&... result) requires std::invocable<const Handler&, decltype(result)...> {
      if (attempt == attempt_) handler(result...);
    };
  }

  Network& network_;
  const ClientPlan& plan_;
  Caller caller_;
  tcp::socket socket_;
  asio::steady_timer timer_;        // of the stage that is under way
  Clock::time_point connected_by_;  // the end of the time for the name and the connect
  std::array<char, frame_header_size> header_{};
  std::string body_;
  std::uint64_t attempt_ = 0;
  bool resolving_ = false;
  bool connected_ = false;
};

/// All instances, and the thread that they run on.
class Network {
 public:
  using Started = std::function<void(std::uint64_t established, load::Window window)>;

  /// `started` is called on the network's thread.
  Network(const ClientPlan& plan, Journal& journal, Started started)
      : plan_(plan),
        journal_(journal),
        started_(std::move(started)),
        io_(1),
        timer_(io_),
        resolver_(io_),
        linger_(plan.load.linger) {
    for (std::uint32_t id = 0; id < plan.load.connections; ++id)
      instances_.push_back(std::make_unique<Instance>(*this, id));
  }

  /// The body of the thread. Returns when the last answer is in, or not waited for any more, and the connections are
  /// closed.
  void run() {
    for (const auto& instance : instances_) instance->resolve();
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
  bool still_resolving() const { return resolving_; }

  // What follows is for instances.

  /// Has the name looked up, for all instances that wait for it: asio does so on one thread, one after the other, and
  /// ten slow lookups of the same name would add up.
  void resolve() {
    if (std::exchange(resolving_, true)) return;
    const Url& url = plan_.load.url;
    resolver_.async_resolve(url.host, std::to_string(url.port), tcp::resolver::numeric_service,
                            [this](const error_code& error, const tcp::resolver::results_type& found) {
                              resolving_ = false;
                              for (const auto& instance : instances_)
                                if (instance->resolving()) instance->resolved(error, found);
                            });
  }

  asio::io_context& io() { return io_; }
  const ClientPlan& plan() const { return plan_; }
  Journal& journal() { return journal_; }
  bool over() const { return over_; }

  /// An attempt has come to an end. With the last of the first attempts the load starts.
  void attempt_ended() {
    if (journal_.begun() || !journal_.settled()) return;
    journal_.begin();
    timer_.expires_at(moment(journal_.window().end));
    timer_.async_wait([this](const error_code& error) {
      if (!error) end();
    });
    started_(journal_.figures().connections.established, journal_.window());
    for (const auto& instance : instances_) instance->start();
  }

  /// After the end: an instance has its last answer, or has given up.
  void one_less_waits() {
    --waiting_;
    linger();
  }

 private:
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
  Started started_;
  asio::io_context io_;
  asio::steady_timer timer_;  // of the end, then of the linger
  tcp::resolver resolver_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::uint32_t waiting_ = 0;
  Nanos linger_;
  bool resolving_ = false;
  bool over_ = false;
};

Instance::Instance(Network& network, std::uint32_t id)
    : network_(network),
      plan_(network.plan()),
      caller_(network.journal(), id),
      socket_(network.io()),
      timer_(network.io()) {}

void Instance::resolve() {
  connected_by_ = Clock::now() + std::chrono::nanoseconds{plan_.load.connect_timeout};
  resolving_ = true;
  arm_at(connected_by_, Failure::resolve_failed);
  network_.resolve();
}

void Instance::resolved(const error_code& error, const tcp::resolver::results_type& found) {
  resolving_ = false;
  error ? fail(Failure::resolve_failed) : connect(found);
}

void Instance::connect(const tcp::resolver::results_type& addresses) {
  caller_.connecting();
  arm_at(connected_by_, Failure::connect_timed_out);
  asio::async_connect(socket_, addresses, of_this_attempt([this](const error_code& error, const tcp::endpoint&) {
                        if (error) return fail(connect_failure(error.value()), error.value());
                        error_code gone_already;  // the next read hears of it
                        socket_.set_option(tcp::no_delay{plan_.load.nodelay}, gone_already);
                        timer_.cancel();
                        connected_ = true;
                        caller_.connected();
                        network_.journal().begun() ? request() : network_.attempt_ended();
                      }));
}

void Instance::request() {
  if (!caller_.may_send()) return;  // the end, or the timer of it, finds this instance idle
  const Caller::Request request = caller_.next();
  arm(plan_.load.timeout, Failure::response_timeout);
  const bool split = plan_.load.write_mode == WriteMode::split;
  asio::async_write(socket_, asio::buffer(split ? request.header : request.whole), at_once,
                    of_this_attempt([this, split, body = request.body](const error_code& error, std::size_t) {
                      if (error) return fail(stream_failure(error));
                      split ? write_body(body) : read_header();
                    }));
}

void Instance::write_body(std::string_view body) {
  asio::async_write(socket_, asio::buffer(body), at_once, of_this_attempt([this](const error_code& error, std::size_t) {
                      error ? fail(stream_failure(error)) : read_header();
                    }));
}

void Instance::read_header() {
  asio::async_read(socket_, asio::buffer(header_), of_this_attempt([this](const error_code& error, std::size_t) {
                     if (error) return fail(stream_failure(error));
                     const bool broken = caller_.receive({header_.data(), header_.size()}) == Caller::Received::broken;
                     broken ? fail(Failure::protocol) : read_body();
                   }));
}

void Instance::read_body() {
  body_.resize(decode_frame_header(header_.data()));
  asio::async_read(socket_, asio::buffer(body_), of_this_attempt([this](const error_code& error, std::size_t) {
                     if (error) return fail(stream_failure(error));
                     switch (caller_.receive(body_)) {
                       case Caller::Received::incomplete:  // not the answer that is waited for
                         return read_header();
                       case Caller::Received::broken:
                         return fail(Failure::protocol);
                       case Caller::Received::answered:
                         return network_.over() ? finish() : request();
                     }
                   }));
}

/// Limits the time of the stage that begins.
void Instance::arm_at(Clock::time_point end, Failure failure) {
  timer_.expires_at(end);
  timer_.async_wait(of_this_attempt([this, failure](const error_code& error) {
    // A wait whose end was already queued when the timer was armed anew is not cancelled any more: look at the time.
    if (!error && timer_.expiry() <= Clock::now()) fail(failure);
  }));
}

/// Counts it, lets go of the connection and tries again a little later.
void Instance::fail(Failure failure, int errno_of_connect) {
  caller_.failed(failure, errno_of_connect);
  drop();
  if (network_.over()) return network_.one_less_waits();
  timer_.expires_after(std::chrono::nanoseconds{plan_.retry_delay});
  timer_.async_wait(of_this_attempt([this](const error_code& error) {
    if (!error) resolve();
  }));
  network_.attempt_ended();
}

/// After the end: this instance has its last answer.
void Instance::finish() {
  rest();
  network_.one_less_waits();
}

/// Nothing is under way on the connection any more, which stays open.
void Instance::rest() {
  ++attempt_;
  timer_.cancel();
}

void Instance::drop() {
  ++attempt_;
  connected_ = resolving_ = false;
  timer_.cancel();
  error_code gone_already;
  socket_.close(gone_already);
}

/// The application's loop, on the main thread: its timer, and the signal to end.
class Loop {
 public:
  explicit Loop(Application& application) : application_(application) { wait(); }

  void run() { io_.run(); }
  template <typename Handler>
  void when_told_to_end(Handler handler) {
    signals_.async_wait([handler](const error_code& error, int) {
      if (!error) handler();
    });
  }

  /// Any thread.
  void begin(std::uint64_t established, const load::Window& window) {
    asio::post(io_, [=, this] {
      application_.begin(established, window);
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
  asio::signal_set signals_{io_, SIGTERM, SIGINT};
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
  Network network{plan, journal, [&loop](auto established, auto window) { loop.begin(established, window); }};
  loop.when_told_to_end([&network] { network.stop(); });

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
