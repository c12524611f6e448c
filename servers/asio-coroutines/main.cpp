// Boost.Asio, coroutine style: one io_context, N threads in run(), a connection is a coroutine on its strand.
#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cassert>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/server/application_tick.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/server/registry.hpp"
#include "lib/server/send_backlog.hpp"
#include "lib/server/threads.hpp"
#include "lib/session/session.hpp"

namespace netdyno {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using namespace asio::experimental::awaitable_operators;

/// co_await gives the error as a value.
constexpr auto as_value = asio::as_tuple(asio::use_awaitable);

/// A coroutine that ends by an exception ends the program, as a handler does.
constexpr auto rethrow = [](std::exception_ptr exception) {
  if (exception) std::rethrow_exception(exception);
};

/// Every asio::async_write below: hand the kernel a whole part at once, where asio::transfer_all stops at 64 KiB.
constexpr auto whole = [](const error_code& error, std::size_t) {
  return error ? 0 : std::numeric_limits<std::size_t>::max();
};

/// How long a connection that is closed because of what the peer sent may take to deliver the last replies.
constexpr std::chrono::seconds linger_time{1};

class Connection;

/// State shared by all connections.
struct Shared {
  const ServerOptions& options;
  Counters counters;
  Registry<Connection> registry;
};

/// One client. On its own strand only, but for the constructor, executor() and the counters.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : shared_(shared),
        options_(shared.options),
        socket_(std::move(socket)),
        session_(make_session(options_, shared.counters)),
        buffer_(std::make_unique_for_overwrite<char[]>(options_.read_buffer)),  // untouched until something is read
        effects_(options_.write_mode),
        outbox_(options_.write_mode, options_.delivery_mode(), options_.outbox_limit),
        backlog_(options_.outbox_limit) {}

  tcp::socket::executor_type executor() { return socket_.get_executor(); }

  /// The life of the connection, in one coroutine: each coroutine called per message would allocate its frame.
  awaitable<void> serve() {
    for (bool open = true; open;) {
      const auto [error, n] =
          co_await socket_.async_read_some(asio::buffer(buffer_.get(), options_.read_buffer), as_value);
      if (error && error != asio::error::eof) co_return close();
      effects_.clear();
      if (n > 0) {
        session_->receive({buffer_.get(), n}, effects_);
      } else {
        session_->end(effects_);
      }
      for (const Effect& effect : effects_) {
        switch (effect.kind) {
          case Effect::Kind::write: {
            assert(outbox_.empty());  // a session replies or broadcasts, so there is one writer at a time
            const auto part = asio::buffer(effects_.bytes(effect));
            const auto [failed, sent] = co_await asio::async_write(socket_, part, whole, as_value);
            shared_.counters.add_bytes_out(sent);
            if (failed) co_return close();
            break;
          }
          case Effect::Kind::broadcast:
            if (broadcast(effect.frame))
              while (others_wait() && !closed_) co_await wait(SendBacklog::a_while);
            break;
          case Effect::Kind::wait:
            co_await wait_unless_reset(effect.remaining());
            if (reset_) co_return close();
            break;
          case Effect::Kind::burn:
            burn_cpu(effect.duration);
            break;
          case Effect::Kind::close:
            open = false;
            break;
        }
      }
    }
    co_await asio::post(executor(), asio::use_awaitable);  // behind the frames already on their way to this strand
    if (closed_) co_return;
    closing_ = true;
    if (outbox_.empty()) co_await linger();
  }

  /// Any thread. This server is behind with sending what this reader would take: senders must wait, and the reader is
  /// not slow for that.
  bool behind() const { return backlog_.any(); }

  /// Checks whether that is still so.
  void check_backlog() { backlog_.check(outbox_, closed_ ? -1 : socket_.native_handle()); }

  /// Any thread. Has its strand take a frame into the outbox.
  void post(const SharedFrame& frame) {
    backlog_.note_posted(*frame);
    asio::dispatch(executor(), [self = shared_from_this(), frame] {
      self->backlog_.note_arrived(*frame);
      self->deliver(frame);
    });
  }

  /// Takes a frame into the outbox; closes a reader that does not read when too much waits for it already.
  void deliver(const SharedFrame& frame) {
    if (closing_) return;
    const bool idle = outbox_.empty();
    if (!backlog_.push(outbox_, frame, socket_.native_handle())) {
      shared_.counters.add_slow_closed();
      return close();
    }
    if (idle)
      asio::co_spawn(
          executor(), [self = shared_from_this()] { return self->send_outbox(); }, rethrow);
  }

  /// Ends the stream at what has arrived already: the session still answers that.
  void stop_receiving() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_receive, gone_already);
  }

 private:
  awaitable<void> wait(std::chrono::nanoseconds duration) {
    asio::steady_timer timer{executor(), duration};
    co_await timer.async_wait(asio::use_awaitable);
  }

  /// The watch for a reset is asked for once: until the connection is over, nothing else comes of it.
  awaitable<void> wait_unless_reset(std::chrono::nanoseconds duration) {
    if (!timer_) {
      timer_.emplace(executor());
      socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](error_code error) {
        if (error) return;
        self->reset_ = true;
        self->timer_->cancel();
      });
    }
    if (reset_) co_return;
    timer_->expires_after(duration);
    co_await timer_->async_wait(as_value);
  }

  /// True where a reader is behind now.
  bool broadcast(const SharedFrame& frame) {
    const auto members = shared_.registry.snapshot();
    bool behind = false;
    for (const auto& member : *members) {
      if (member.get() == this && options_.audience == Audience::others) continue;
      if (options_.threads == 1) {
        member->deliver(frame);  // as post() would do here, for a third of the price
      } else {
        member->post(frame);
      }
      behind |= member->behind();
    }
    return behind;
  }

  /// Whether a reader is still behind. Each checks for itself until the next call.
  bool others_wait() {
    const auto members = shared_.registry.snapshot();
    bool behind = false;
    for (const auto& member : *members) {
      if (!member->behind()) continue;
      behind = true;
      asio::dispatch(member->executor(), [member] { member->check_backlog(); });
    }
    return behind;
  }

  awaitable<void> send_outbox() {
    for (auto batch = outbox_.next(); !batch.empty(); batch = outbox_.next()) {
      const auto [error, n] = co_await asio::async_write(socket_, batch, whole, as_value);
      shared_.counters.add_bytes_out(n);
      if (error) co_return close();
      outbox_.sent(n);
      check_backlog();
    }
    if (closing_) co_await linger();
  }

  /// Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes
  /// resets the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6).
  awaitable<void> linger() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_send, gone_already);
    co_await (drain() || wait(linger_time));
    close();
  }

  awaitable<void> drain() {
    while (true) {
      const auto [error, n] =
          co_await socket_.async_read_some(asio::buffer(buffer_.get(), options_.read_buffer), as_value);
      if (error) co_return;
      session_->receive({buffer_.get(), n}, effects_);
    }
  }

  void close() {
    closing_ = true;
    if (std::exchange(closed_, true)) return;
    backlog_.clear();
    error_code gone_already;
    socket_.close(gone_already);
    shared_.registry.leave(shared_from_this());
  }

  Shared& shared_;
  const ServerOptions& options_;
  tcp::socket socket_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<char[]> buffer_;
  Effects effects_;
  Outbox<asio::const_buffer> outbox_;
  SendBacklog backlog_;
  std::optional<asio::steady_timer> timer_;  // of service times
  bool reset_ = false;                       // by the peer
  bool closing_ = false;
  bool closed_ = false;
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener)
      : shared_{options, {}, {}},
        io_(options.threads),
        protocol_(protocol_of(listener.get())),
        acceptor_(new_executor(), protocol_, listener.release()) {}

  /// Main thread. When it returns, `options.threads` threads serve.
  void start() {
    asio::co_spawn(acceptor_.get_executor(), accept(), rethrow);
    start_or_die([this] {
      for (int i = 0; i < shared_.options.threads; ++i)
        threads_.push_back(std::async(std::launch::async, [this]() noexcept { io_.run(); }));
    });
  }

  /// Main thread. Waits for the threads to end their work; false when the grace ran out.
  bool finish() {
    asio::post(acceptor_.get_executor(), [this] { end(); });
    const auto grace_ends = std::chrono::steady_clock::now() + shutdown_grace;
    return std::ranges::all_of(
        threads_, [=](auto& thread) { return thread.wait_until(grace_ends) == std::future_status::ready; });
  }

  Totals totals() const { return shared_.counters.totals(); }

 private:
  static tcp protocol_of(int listener) {
    return tcp::endpoint{asio::ip::make_address(local_endpoint(listener).host), 0}.protocol();
  }

  /// One thread is one strand already.
  asio::any_io_executor new_executor() {
    if (shared_.options.threads == 1) return io_.get_executor();
    return asio::make_strand(io_);
  }

  awaitable<void> accept() {
    while (true) {
      co_await acceptor_.async_wait(tcp::acceptor::wait_read, as_value);
      if (!acceptor_.is_open()) co_return;
      if (!take_in()) co_await pause();
    }
  }

  /// The queue is still full: try again only after a while.
  awaitable<void> pause() {
    asio::steady_timer timer{acceptor_.get_executor(), std::chrono::milliseconds{10}};
    co_await timer.async_wait(asio::use_awaitable);
  }

  /// Accepts all waiting connections; false when descriptors or memory ran out.
  bool take_in() {
    while (true) {
      Accepted next = accept_next(acceptor_.native_handle(), true);
      if (next.status != AcceptStatus::accepted) return next.status != AcceptStatus::exhausted;
      start(std::move(next.fd));
    }
  }

  void start(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    tcp::socket socket{new_executor()};
    error_code error;
    socket.assign(protocol_, fd.get(), error);
    if (error) return;  // epoll watches no more descriptors: this client is closed, the others go on
    fd.release();
    shared_.counters.add_connection();
    const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    shared_.registry.join(connection);
    asio::co_spawn(
        connection->executor(), [connection] { return connection->serve(); }, rethrow);
  }

  /// Stops accepting, and ends every stream at what has arrived; run() returns when that is answered.
  void end() {
    take_in();  // connected clients have been promised an answer
    acceptor_.close();
    const auto members = shared_.registry.snapshot();
    for (const auto& connection : *members)
      asio::dispatch(connection->executor(), [connection] { connection->stop_receiving(); });
  }

  Shared shared_;
  asio::io_context io_;
  tcp protocol_;
  tcp::acceptor acceptor_;  // this, and what follows, on one strand
  std::vector<std::future<void>> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  ApplicationTick tick;
  const ServerOptions options =
      parse_server_options(argc, argv, ThreadModel::any, "tcp", [&](CommandLine& line) { tick.add_option(line); });
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start();
  announce_ready(endpoint);

  tick.run_until(stop.get());
  const bool all_gone = server.finish();
  tick.print_totals(server.totals());
  if (!all_gone) std::_Exit(0);  // a thread still burns CPU for a request, or a peer does not read; the totals are out
}
