// libuv: its loop on one thread, a uv_tcp_t and a chain of callbacks for each connection.
#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/server/grace.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/server/roster.hpp"
#include "lib/session/session.hpp"

namespace netdyno {
namespace {

void must(int result, const char* call) {
  if (result < 0) die(std::string{call} + ": " + uv_strerror(result));
}

template <typename Handle>
uv_handle_t* handle(Handle& of_any_type) {
  return reinterpret_cast<uv_handle_t*>(&of_any_type);
}

/// Calls back at `due` and not before. libuv counts whole milliseconds of the same clock.
void start_timer(uv_timer_t& timer, Grace::Clock::time_point due, uv_timer_cb call_back) {
  const auto due_ms = std::chrono::ceil<std::chrono::milliseconds>(due.time_since_epoch()).count();
  const auto now_ms = static_cast<std::int64_t>(uv_now(timer.loop));
  uv_timer_start(&timer, call_back, static_cast<std::uint64_t>(std::max<std::int64_t>(due_ms - now_ms, 0)), 0);
}

class Client;

/// State shared by all clients, as there is one thread.
struct Shared {
  Shared(const ServerOptions& server_options, UniqueFd signal_fd)
      : options(server_options), signals(std::move(signal_fd)), buffer(options.read_buffer) {
    must(uv_loop_init(&loop), "uv_loop_init");
    must(uv_idle_init(&loop, &working), "uv_idle_init");
    working.data = this;
  }

  /// One after the other, so that neither I/O nor the end waits for more than one, or for a millisecond of short ones.
  void in_a_turn_for_long_work(Client& client);
  void do_long_work();

  const ServerOptions& options;
  UniqueFd signals;
  Counters counters;
  uv_loop_t loop;
  std::vector<char> buffer;  // what a read brought is given to the session before the next one
  Roster<Client> clients;
  std::deque<Client*> long_work;
  uv_idle_t working;  // active, and calls back in every turn, while there is some
  Grace grace;
};

/// One connection as a chain of callbacks: on_read, then carry_out until every effect is done, then go_on, which lets
/// libuv read again. It is destroyed when libuv has let go of its handles.
class Client {
 public:
  explicit Client(Shared& shared)
      : shared_(shared),
        session_(make_session(shared.options, shared.counters)),
        effects_(shared.options.write_mode),
        outbox_(shared.options.write_mode, shared.options.deliveries, shared.options.outbox_limit) {
    must(uv_tcp_init(&shared_.loop, &socket_), "uv_tcp_init");
    must(uv_timer_init(&shared_.loop, &timer_), "uv_timer_init");
    socket_.data = timer_.data = write_.data = this;
  }

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&socket_); }
  int fd() const {
    uv_os_fd_t fd = -1;
    uv_fileno(reinterpret_cast<const uv_handle_t*>(&socket_), &fd);
    return fd;
  }

  void read() {
    if (std::exchange(reading_, true)) return;
    const auto lend = [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
      std::vector<char>& shared = self(handle).shared_.buffer;
      *buffer = uv_buf_init(shared.data(), static_cast<unsigned>(shared.size()));
    };
    uv_read_start(stream(), lend, [](uv_stream_t* stream, ssize_t n, const uv_buf_t*) { self(stream).on_read(n); });
  }

  /// Queues a frame, which leaves at the end of the turn. A reader for which too much waits is given up and counted.
  /// True when a flush() is to be called that was not before.
  bool post(const SharedFrame& frame) {
    if (!member_ || closed()) return false;
    bool taken = outbox_.push(frame);
    if (!taken) {
      flush();  // what waits for the end of the turn only
      taken = closed() || outbox_.push_unless_stuck(frame, fd());
    }
    if (!taken) {
      shared_.counters.add_slow_closed();
      close();
    }
    return !closed() && !std::exchange(flush_due_, true);
  }

  void flush() {
    flush_due_ = false;
    while (unsent_ == 0 && !closed()) {
      const auto batch = outbox_.next();
      if (batch.empty()) break;
      if (send(batch)) outbox_.sent(sending_);
    }
    if (!member_) go_on();
  }

  /// A service that burns CPU has its turn.
  void burn() {
    if (!burn_cpu_unless_stopped(shared_.signals.get(), shared_.grace, to_burn_)) close();
    carry_out();
  }

  void close() {
    if (closed()) return;
    shared_.counters.add_bytes_out(unsent_ - uv_stream_get_write_queue_size(stream()));
    unsent_ = 0;
    const auto let_go = [](uv_handle_t* handle) { self(handle).on_closed(); };
    uv_close(handle(socket_), let_go);
    uv_close(handle(timer_), let_go);
  }

  std::size_t index = 0;  // in the Roster

 private:
  template <typename Handle>
  static Client& self(const Handle* handle) {
    return *static_cast<Client*>(handle->data);
  }

  bool closed() const { return uv_is_closing(reinterpret_cast<const uv_handle_t*>(&socket_)) != 0; }

  void on_read(ssize_t n) {
    if (n == 0) return;  // EAGAIN
    // libuv tells of a reset as of an end where bytes came with it.
    if (n < 0 && (n != UV_EOF || is_reset(fd()))) return close();
    if (n < 0) {
      ended_ = true;
      if (!waits_) serve({});
    } else if (waits_) {
      held_.assign(shared_.buffer.data(), static_cast<std::size_t>(n));
      pause();
    } else {
      serve({shared_.buffer.data(), static_cast<std::size_t>(n)});
    }
  }

  /// Bytes, or none for the end of the stream.
  void serve(std::string_view bytes) {
    effects_.clear();
    if (bytes.empty()) {
      session_->end(effects_);
    } else {
      session_->receive(bytes, effects_);
    }
    next_ = effects_.begin();
    carry_out();
  }

  /// Carries out the effects from next_ on. One that takes time ends this call; its callback comes back here.
  void carry_out() {
    while (next_ != effects_.end() && !closed()) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write: {
          const std::string_view bytes = effects_.bytes(effect);
          const uv_buf_t part{const_cast<char*>(bytes.data()), bytes.size()};
          // Back-pressure: a client that takes no replies is not read.
          if (!send({&part, 1})) return pause();
          break;
        }
        case Effect::Kind::broadcast:
          shared_.clients.broadcast(effect.frame, shared_.options.audience == Audience::others ? this : nullptr);
          break;
        case Effect::Kind::wait:
          // It reads on, once, as libuv reports a reset only to a read.
          waits_ = true;
          if (held_.empty() && !ended_) read();
          return start_timer(timer_, Grace::Clock::now() + effect.remaining(), [](uv_timer_t* timer) {
            self(timer).waits_ = false;
            self(timer).carry_out();
          });
        case Effect::Kind::burn:
          pause();
          to_burn_ = effect.duration;
          return shared_.in_a_turn_for_long_work(*this);
        case Effect::Kind::close:
          member_ = false;
          break;
      }
    }
    go_on();
  }

  void go_on() {
    if (closed()) return;
    if (member_) return held_.empty() && !ended_ ? read() : serve(std::exchange(held_, {}));
    pause();
    if (!outbox_.empty()) return;  // flush() comes back here
    end_stream(fd());
    close();
  }

  void pause() {
    if (std::exchange(reading_, false) && !closed()) uv_read_stop(stream());
  }

  /// Tries at once; what the socket does not take is left to libuv, which calls on_sent when all is sent. True when
  /// nothing was left; false also when it is closed now. There is one writer at a time, as a session replies or
  /// broadcasts.
  bool send(std::span<const uv_buf_t> parts) {
    sending_ = 0;
    for (const uv_buf_t& part : parts) sending_ += part.len;
    const int n = uv_try_write(stream(), parts.data(), static_cast<unsigned>(parts.size()));
    if (n < 0 && n != UV_EAGAIN) {
      close();
      return false;
    }
    const auto sent = static_cast<std::size_t>(std::max(n, 0));
    shared_.counters.add_bytes_out(sent);
    unsent_ = sending_ - sent;
    if (unsent_ > 0) send_later(parts, sent);
    return unsent_ == 0;
  }

  void send_later(std::span<const uv_buf_t> parts, std::size_t sent) {
    rest_.assign(parts.begin(), parts.end());
    for (uv_buf_t& part : rest_) {
      const std::size_t begin = std::min(sent, part.len);
      part = {part.base + begin, part.len - begin};
      sent -= begin;
    }
    std::erase_if(rest_, [](const uv_buf_t& part) { return part.len == 0; });
    const auto on_sent = [](uv_write_t* request, int status) { self(request).on_sent(status); };
    if (uv_write(&write_, stream(), rest_.data(), static_cast<unsigned>(rest_.size()), on_sent) < 0) close();
  }

  void on_sent(int status) {
    if (status < 0) {
      unsent_ = 0;  // how much of it was sent, libuv no longer knows
      return close();
    }
    shared_.counters.add_bytes_out(std::exchange(unsent_, 0));
    if (outbox_.empty()) return carry_out();
    outbox_.sent(sending_);
    flush();
  }

  /// libuv calls this last in a turn, with none of our functions on the stack. What a client holds is given back here:
  /// another turn may come late.
  void on_closed() {
    if (++closed_handles_ < 2) return;
    Roster<Client>& clients = shared_.clients;
    clients.remove(*this);
    clients.end_turn();
  }

  Shared& shared_;
  uv_tcp_t socket_;
  uv_timer_t timer_;
  uv_write_t write_;
  std::unique_ptr<Session> session_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  Outbox<uv_buf_t> outbox_;
  std::vector<uv_buf_t> rest_;  // of the write that libuv was left with
  std::size_t sending_ = 0;     // bytes of the last write
  std::size_t unsent_ = 0;      // of it
  std::chrono::nanoseconds to_burn_{0};
  std::string held_;    // what came in a service time: one read
  bool waits_ = false;  // for a service time to pass
  bool ended_ = false;  // by the peer
  bool reading_ = false;
  bool member_ = true;
  bool flush_due_ = false;
  int closed_handles_ = 0;
};

void Shared::in_a_turn_for_long_work(Client& client) {
  long_work.push_back(&client);
  uv_idle_start(&working, [](uv_idle_t* idle) { static_cast<Shared*>(idle->data)->do_long_work(); });
}

void Shared::do_long_work() {
  const auto enough = Grace::Clock::now() + std::chrono::milliseconds{1};
  do {
    Client& client = *long_work.front();
    long_work.pop_front();
    client.burn();
  } while (!long_work.empty() && Grace::Clock::now() < enough);
  if (long_work.empty()) uv_idle_stop(&working);
}

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals) : shared_{options, std::move(signals)} {
    uv_loop_t* const loop = &shared_.loop;
    must(uv_tcp_init(loop, &listener_), "uv_tcp_init");
    must(uv_tcp_open(&listener_, listener.release()), "uv_tcp_open");
    must(uv_poll_init(loop, &stop_signal_, shared_.signals.get()), "uv_poll_init");
    must(uv_check_init(loop, &turn_), "uv_check_init");
    must(uv_timer_init(loop, &grace_), "uv_timer_init");
    listener_.data = stop_signal_.data = turn_.data = this;
    uv_unref(handle(turn_));  // these two are no reason to go on
    uv_unref(handle(grace_));
  }

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    const auto accept = [](uv_stream_t* stream, int status) { self(stream).accept(status); };
    must(uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), shared_.options.backlog, accept), "uv_listen");
    must(uv_poll_start(&stop_signal_, UV_READABLE, [](uv_poll_t* poll, int, int) { self(poll).end(); }),
         "uv_poll_start");
    must(uv_check_start(&turn_, [](uv_check_t* check) { self(check).shared_.clients.end_turn(); }), "uv_check_start");
    uv_run(&shared_.loop, UV_RUN_DEFAULT);
    close_all();
  }

  const Counters& counters() const { return shared_.counters; }

 private:
  template <typename Handle>
  static Server& self(const Handle* handle) {
    return *static_cast<Server*>(handle->data);
  }

  void accept(int status) {
    if (status < 0) return;  // it left before, or there was no descriptor and libuv closed it
    auto client = std::make_unique<Client>(shared_);
    Client& added = *client;
    shared_.clients.add(std::move(client));
    if (uv_accept(reinterpret_cast<uv_stream_t*>(&listener_), added.stream()) < 0) return added.close();
    set_nodelay(added.fd(), shared_.options.nodelay);
    shared_.counters.add_connection();
    added.read();
  }

  void end() {
    shared_.grace.start();
    uv_close(handle(listener_), nullptr);
    uv_close(handle(stop_signal_), nullptr);
    shared_.clients.stop_receiving();
    start_timer(grace_, shared_.grace.end(), [](uv_timer_t* timer) { uv_stop(timer->loop); });
  }

  /// libuv lets go of handles in a turn of its loop.
  void close_all() {
    const auto close = [](uv_handle_t* handle, void*) {
      if (uv_is_closing(handle) == 0) uv_close(handle, nullptr);
    };
    uv_walk(&shared_.loop, close, nullptr);
    uv_run(&shared_.loop, UV_RUN_DEFAULT);
    shared_.clients.clear();
    uv_loop_close(&shared_.loop);
  }

  Shared shared_;
  uv_tcp_t listener_;
  uv_poll_t stop_signal_;
  uv_check_t turn_;
  uv_timer_t grace_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
