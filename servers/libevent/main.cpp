// libevent: its loop on one thread, raw events (no bufferevent) and a chain of callbacks for each connection.
#include <event2/event.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
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

/// The loop: what it calls back when a descriptor is ready, or a time is over.
using Base = std::unique_ptr<event_base, decltype(&event_base_free)>;
using Event = std::unique_ptr<event, decltype(&event_free)>;

Base new_base(const ServerOptions& options) {
  const std::unique_ptr<event_config, decltype(&event_config_free)> config{event_config_new(), event_config_free};
  if (!config) die("event_config_new: out of memory");
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
  // A timerfd costs a system call in every turn. Without it libevent reads the kernel's coarse clock.
  if (options.service_time.count() > 0 && options.service_kind == ServiceKind::wait)
    event_config_set_flag(config.get(), EVENT_BASE_FLAG_PRECISE_TIMER);
  Base base{event_base_new_with_config(config.get()), event_base_free};
  if (!base) die("event_base_new: no descriptor or memory left");
  return base;
}

/// An event that calls `method` of `object`. `what` as in event_new(): EV_READ, EV_WRITE, EV_PERSIST.
template <auto method, typename Object>
Event new_event(const Base& base, int fd, short what, Object& object) {
  const auto call = [](evutil_socket_t, short, void* target) { (static_cast<Object*>(target)->*method)(); };
  Event made{event_new(base.get(), fd, what, call, &object), event_free};
  if (!made) die("event_new: out of memory");
  return made;
}

/// From now on it is waited for. False when the kernel has no room for it.
bool watch(const Event& event) { return event_add(event.get(), nullptr) == 0; }

/// It may be early, by what libevent knows of the time.
void start_timer(const Event& timer, std::chrono::nanoseconds duration) {
  const auto us = std::chrono::ceil<std::chrono::microseconds>(std::max(duration, {})).count();
  const timeval after{us / 1'000'000, us % 1'000'000};
  event_add(timer.get(), &after);
}

class Client;

/// State shared by all clients, as there is one thread.
struct Shared {
  Shared(const ServerOptions& server_options, UniqueFd signal_fd)
      : options(server_options), signals(std::move(signal_fd)), base(new_base(options)), buffer(options.read_buffer) {}

  const ServerOptions& options;
  UniqueFd signals;
  Counters counters;
  Base base;
  std::vector<char> buffer;  // what a read brought is given to the session before the next one
  Roster<Client> clients;
  std::deque<Client*> long_work;  // whose service burns CPU
  Grace grace;
};

/// One connection as a chain of callbacks: on_input, then carry_out until every effect is done, then go_on, which waits
/// for input again. It is destroyed after the turn in which it was closed.
class Client {
 public:
  Client(UniqueFd fd, Shared& shared)
      : shared_(shared),
        fd_(std::move(fd)),
        input_(new_event<&Client::on_input>(shared.base, fd_.get(), EV_READ | EV_PERSIST, *this)),
        output_(new_event<&Client::on_output>(shared.base, fd_.get(), EV_WRITE, *this)),
        timer_(new_event<&Client::on_timer>(shared.base, -1, 0, *this)),
        session_(make_session(shared.options, shared.counters)),
        effects_(shared.options.write_mode),
        outbox_(shared.options.write_mode, shared.options.deliveries, shared.options.outbox_limit) {}

  int fd() const { return fd_.get(); }

  /// False when the kernel has no room for it.
  bool read() { return std::exchange(reading_, true) || watch(input_); }

  /// Queues a frame, which leaves at the end of the turn. A reader for which too much waits is closed and counted. True
  /// when a flush() is to be called that was not before.
  bool post(const SharedFrame& frame) {
    if (!member_ || closed_) return false;
    bool taken = outbox_.push(frame);
    if (!taken) {
      flush();  // what waits for the end of the turn only
      taken = closed_ || outbox_.push_unless_stuck(frame, fd());
    }
    if (!taken) {
      shared_.counters.add_slow_closed();
      close();
    }
    return !closed_ && !std::exchange(flush_due_, true);
  }

  void flush() {
    flush_due_ = false;
    while (unsent_.empty() && !closed_) {
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

  std::size_t index = 0;  // in the Roster

 private:
  using Clock = Grace::Clock;

  void on_input() {
    const ssize_t n = recv(fd(), shared_.buffer.data(), shared_.buffer.size(), 0);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return close();
    if (n < 0) return;
    const std::string_view bytes{shared_.buffer.data(), static_cast<std::size_t>(n)};
    if (!waits_) return serve(bytes);
    held_ = bytes;
    ended_ = bytes.empty();
    pause();
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
    while (next_ != effects_.end() && !closed_) {
      const Effect& effect = *next_++;
      switch (effect.kind) {
        case Effect::Kind::write: {
          const std::string_view bytes = effects_.bytes(effect);
          const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
          // Back-pressure: a client that takes no replies is not read.
          if (!send({&part, 1})) return pause();
          break;
        }
        case Effect::Kind::broadcast:
          shared_.clients.broadcast(effect.frame, shared_.options.audience == Audience::others ? this : nullptr);
          break;
        case Effect::Kind::wait:
          // It reads on, once, as libevent reports a reset only to a wait for input.
          waits_ = true;
          if (held_.empty() && !ended_ && !read()) return close();
          due_ = Clock::now() + effect.remaining();
          return start_timer(timer_, effect.remaining());
        case Effect::Kind::burn:
          pause();
          to_burn_ = effect.duration;
          return shared_.long_work.push_back(this);
        case Effect::Kind::close:
          member_ = false;
          break;
      }
    }
    go_on();
  }

  void on_timer() {
    const auto left = due_ - Clock::now();
    if (left.count() > 0) return start_timer(timer_, left);
    waits_ = false;
    carry_out();
  }

  void go_on() {
    if (closed_) return;
    if (member_ && (ended_ || !held_.empty())) return serve(std::exchange(held_, {}));
    if (member_) {
      if (!read()) close();
      return;
    }
    pause();
    if (!outbox_.empty()) return;  // flush() comes back here
    end_stream(fd());
    close();
  }

  void pause() {
    if (std::exchange(reading_, false)) event_del(input_.get());
  }

  /// Tries at once; what the socket does not take waits until it does, and on_output goes on. True when nothing was
  /// left; false also when it is closed now. There is one writer at a time, as a session replies or broadcasts.
  bool send(std::span<const iovec> parts) {
    unsent_.assign(parts.begin(), parts.end());
    sending_ = 0;
    for (const iovec& part : parts) sending_ += part.iov_len;
    return send_rest();
  }

  bool send_rest() {
    while (!unsent_.empty()) {
      const ssize_t n = writev(fd(), unsent_.data(), static_cast<int>(unsent_.size()));
      if (n >= 0) {
        note_taken(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN && watch(output_)) {
        return false;
      } else if (errno != EINTR) {
        close();
        return false;
      }
    }
    return true;
  }

  void note_taken(std::size_t bytes) {
    shared_.counters.add_bytes_out(bytes);
    auto part = unsent_.begin();
    for (; part != unsent_.end() && bytes >= part->iov_len; ++part) bytes -= part->iov_len;
    unsent_.erase(unsent_.begin(), part);
    if (bytes > 0)
      unsent_.front() = {static_cast<char*>(unsent_.front().iov_base) + bytes, unsent_.front().iov_len - bytes};
  }

  void on_output() {
    if (!send_rest()) return;
    if (outbox_.empty()) return carry_out();
    outbox_.sent(sending_);
    flush();
  }

  /// Nothing calls it back any more.
  void close() {
    if (std::exchange(closed_, true)) return;
    for (const Event* event : {&input_, &output_, &timer_}) event_del(event->get());
    shared_.clients.remove(*this);
  }

  Shared& shared_;
  const UniqueFd fd_;
  const Event input_;
  const Event output_;
  const Event timer_;
  std::unique_ptr<Session> session_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  Outbox<iovec> outbox_;
  std::vector<iovec> unsent_;  // of the last write
  std::size_t sending_ = 0;    // bytes of the last write
  Clock::time_point due_;      // when the service time is over
  std::chrono::nanoseconds to_burn_{0};
  std::string held_;    // what came in a service time: one read
  bool waits_ = false;  // for a service time to pass
  bool ended_ = false;  // by the peer
  bool reading_ = false;
  bool member_ = true;
  bool flush_due_ = false;
  bool closed_ = false;
};

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : shared_{options, std::move(signals)},
        listener_(std::move(listener)),
        acceptable_(new_event<&Server::accept_all>(shared_.base, listener_.get(), EV_READ, *this)),
        room_again_(new_event<&Server::accept_all>(shared_.base, -1, 0, *this)),
        stop_signal_(new_event<&Server::end>(shared_.base, shared_.signals.get(), EV_READ, *this)),
        grace_over_(new_event<&Server::wake_at_end_of_grace>(shared_.base, -1, 0, *this)) {}

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    watch(acceptable_);
    watch(stop_signal_);
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      event_base_loop(shared_.base.get(), EVLOOP_ONCE | (shared_.long_work.empty() ? 0 : EVLOOP_NONBLOCK));
      if (!shared_.long_work.empty()) do_long_work();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

  const Counters& counters() const { return shared_.counters; }

 private:
  /// Accepts all waiting connections, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_next(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_next(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      watch(acceptable_);
    } else if (next.status == AcceptStatus::exhausted) {
      start_timer(room_again_, std::chrono::milliseconds{10});
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_);
    if (!client->read()) return;  // no room: this client is closed
    shared_.clients.add(std::move(client));
  }

  /// One after the other, so that neither I/O nor the end waits for more than one, or for a millisecond of short ones.
  void do_long_work() {
    const auto enough = Grace::Clock::now() + std::chrono::milliseconds{1};
    do {
      Client& client = *shared_.long_work.front();
      shared_.long_work.pop_front();
      client.burn();
    } while (!shared_.long_work.empty() && Grace::Clock::now() < enough);
  }

  void end() {
    shared_.grace.start();
    event_del(acceptable_.get());
    event_del(room_again_.get());
    listener_.reset();
    shared_.clients.stop_receiving();
    wake_at_end_of_grace();
  }

  /// run() does, after the turn that this callback ended the wait of.
  void wake_at_end_of_grace() { start_timer(grace_over_, shared_.grace.end() - Grace::Clock::now()); }

  Shared shared_;
  UniqueFd listener_;
  const Event acceptable_;
  const Event room_again_;
  const Event stop_signal_;
  const Event grace_over_;
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
