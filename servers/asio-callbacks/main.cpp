// Boost.Asio, callback style: one io_context, N threads in run(), a connection is a chain of handlers on its strand.
#include <poll.h>

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <cassert>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/server/registry.hpp"
#include "lib/server/threads.hpp"
#include "lib/session/session.hpp"

namespace netdyno {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Every asio::async_write below: hand the kernel a whole part at once, where asio::transfer_all stops at 64 KiB.
constexpr auto whole = [](const error_code& error, std::size_t) {
  return error ? 0 : std::numeric_limits<std::size_t>::max();
};

/// How long a connection that is closed because of what the peer sent may take to deliver the last replies.
constexpr std::chrono::seconds linger_time{1};

class Connection;

/// What all connections share.
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
        timer_(socket_.get_executor()),
        session_(make_session(options_, shared.counters)),
        buffer_(std::make_unique_for_overwrite<char[]>(options_.read_buffer)),  // untouched until something is read
        effects_(options_.write_mode),
        outbox_(options_.write_mode, options_.outbox_limit) {}

  tcp::socket::executor_type executor() { return socket_.get_executor(); }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_.get(), options_.read_buffer),
                            [self = shared_from_this()](error_code error, std::size_t n) { self->on_read(error, n); });
  }

  /// Takes a frame into the outbox; closes this reader when too much waits for it already.
  void deliver(SharedFrame frame) {
    if (closing_) return;
    const bool idle = outbox_.empty();
    if (!outbox_.push(std::move(frame))) {
      shared_.counters.add_slow_closed();
      return close();
    }
    if (idle) send_outbox();
  }

  /// Ends the stream at what has arrived already: the session still answers that.
  void stop_receiving() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_receive, gone_already);
  }

 private:
  void on_read(error_code error, std::size_t n) {
    if (error && error != asio::error::eof) return close();
    effects_.clear();
    if (n > 0) {
      session_->receive({buffer_.get(), n}, effects_);
    } else if (closing_) {
      return close();
    } else {
      session_->end(effects_);
    }
    next_ = effects_.begin();
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its handler comes back here.
  void carry_out() {
    while (next_ != effects_.end()) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write:
          return write(effects_.bytes(effect));
        case Effect::Kind::broadcast:
          broadcast(effect.frame);
          break;
        case Effect::Kind::wait:
          return wait(effect.duration);
        case Effect::Kind::burn:
          burn_cpu(effect.duration);
          break;
        case Effect::Kind::close:
          // Behind the frames that are already on their way to this strand.
          return asio::post(executor(), [self = shared_from_this()] { self->finish(); });
      }
    }
    read();
  }

  void write(std::string_view bytes) {
    assert(outbox_.empty());  // a session replies or broadcasts, so there is one writer at a time
    asio::async_write(socket_, asio::buffer(bytes), whole,
                      [self = shared_from_this()](error_code error, std::size_t n) {
                        self->shared_.counters.add_bytes_out(n);
                        if (error) return self->close();
                        self->carry_out();
                      });
  }

  void wait(std::chrono::nanoseconds duration) {
    timer_.expires_after(duration);
    timer_.async_wait([self = shared_from_this()](error_code) { self->carry_out(); });
  }

  void broadcast(const SharedFrame& frame) {
    const auto everybody = shared_.registry.snapshot();
    for (const auto& member : *everybody) {
      if (member.get() == this && options_.audience == Audience::others) continue;
      if (options_.threads == 1) {
        member->deliver(frame);  // as dispatch would do here, for a third of the price
      } else {
        asio::dispatch(member->executor(), [member, frame] { member->deliver(frame); });
      }
    }
  }

  void send_outbox() {
    const auto batch = outbox_.next();
    if (batch.empty()) return closing_ ? linger() : void();
    asio::async_write(socket_, batch, whole, [self = shared_from_this()](error_code error, std::size_t n) {
      self->shared_.counters.add_bytes_out(n);
      if (error) return self->close();
      self->outbox_.sent(n);
      self->send_outbox();
    });
  }

  void finish() {
    closing_ = true;
    if (outbox_.empty()) linger();
  }

  /// Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes
  /// resets the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6).
  void linger() {
    error_code gone_already;
    socket_.shutdown(tcp::socket::shutdown_send, gone_already);
    timer_.expires_after(linger_time);
    timer_.async_wait([self = shared_from_this()](error_code) { self->close(); });
    read();
  }

  void close() {
    closing_ = true;
    if (!socket_.is_open()) return;
    error_code gone_already;
    socket_.close(gone_already);
    timer_.cancel();
    shared_.registry.leave(shared_from_this());
  }

  Shared& shared_;
  const ServerOptions& options_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<char[]> buffer_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  Outbox<asio::const_buffer> outbox_;
  bool closing_ = false;
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener)
      : shared_{options, {}, {}},
        io_(options.threads),
        protocol_(protocol_of(listener.get())),
        acceptor_(new_executor(), protocol_, listener.release()),
        timer_(acceptor_.get_executor()) {}

  /// Main thread. When it returns, `options.threads` threads serve.
  void start() {
    accept();
    start_or_die([this] {
      for (int i = 0; i < shared_.options.threads; ++i)
        threads_.push_back(std::async(std::launch::async, [this]() noexcept { io_.run(); }));
    });
  }

  /// Main thread. Waits until `stop` is readable, then for the threads to end their work; false when the grace ran out.
  bool finish_when_told(int stop) {
    pollfd told_to_end{stop, POLLIN, 0};
    while (poll(&told_to_end, 1, -1) < 0) {
    }
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

  void accept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code) {
      if (acceptor_.is_open()) take_in() ? accept() : pause();
    });
  }

  /// The queue is still full: look again only after a while.
  void pause() {
    timer_.expires_after(std::chrono::milliseconds{10});
    timer_.async_wait([this](error_code) {
      if (acceptor_.is_open()) accept();
    });
  }

  /// Takes in everybody who waits; false when descriptors or memory ran out.
  bool take_in() {
    while (true) {
      Accepted next = accept_one(acceptor_.native_handle(), true);
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
    asio::dispatch(connection->executor(), [connection] { connection->read(); });
  }

  /// Stops accepting, and ends every stream at what has arrived; run() returns when that is answered.
  void end() {
    take_in();  // who is connected already has been promised an answer
    acceptor_.close();
    const auto everybody = shared_.registry.snapshot();
    for (const auto& connection : *everybody)
      asio::dispatch(connection->executor(), [connection] { connection->stop_receiving(); });
  }

  Shared shared_;
  asio::io_context io_;
  tcp protocol_;
  tcp::acceptor acceptor_;  // this, and what follows, on one strand
  asio::steady_timer timer_;
  std::vector<std::future<void>> threads_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start();
  announce_ready(endpoint);

  const bool all_gone = server.finish_when_told(stop.get());
  print_totals(server.totals());
  if (!all_gone) std::_Exit(0);  // a thread still burns CPU for a request, or a peer does not read; the totals are out
}
