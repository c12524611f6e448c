// An instrument, not a contestant: answers after exactly programmed delays, with programmed stalls and faults, and
// tells at the end what it did. One thread, on the loop of the epoll family.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "client.hpp"

namespace netdyno::calibration {
namespace {

class Server {
 public:
  Server(const Settings& settings, UniqueFd listener, UniqueFd signals)
      : shared_{settings, std::move(signals)},
        listener_(std::move(listener)),
        acceptable_(shared_.loop, listener_.get()),
        told_(shared_.loop, shared_.signals.get()) {
    shared_.on_first_request = callback<&Server::set_stalls>(*this);
  }

  /// Returns when the program was told to end, and all connections are done or the grace is over.
  void run() {
    accept_all();
    told_.when_readable(callback<&Server::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

  void print_totals() {
    record_stalls_of_connections();
    netdyno::print_totals(shared_.counters.totals(), "calibration", shared_.record.json());
  }

 private:
  /// Takes in all who wait, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_one(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_one(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      acceptable_.when_readable(callback<&Server::accept_all>(*this));
    } else if (next.status == AcceptStatus::exhausted) {
      shared_.loop.at(Clock::now() + std::chrono::milliseconds{10}, callback<&Server::accept_all>(*this));
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_, ++accepted_);
    if (!client->watch()) return;  // no room: this client is closed
    client->start();
    shared_.clients.add(std::move(client));
  }

  void set_stalls() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto begin = shared_.first_request + stall.at;
      if (!stall.connection) shared_.loop.at(begin, callback<&Server::stall_all>(*this));
    }
  }

  /// Those that concerned somebody. They are held to the clock, so they are as long as programmed.
  void record_stalls_of_connections() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto end = shared_.first_request + stall.at + stall.duration;
      if (stall.connection && shared_.begun && *stall.connection <= accepted_ && end <= Clock::now())
        shared_.record.stalled(stall, end - stall.duration, end);
    }
  }

  /// Sleeps, as a server does that was stopped; only the end of the program is looked out for.
  void stall_all() {
    const auto now = Clock::now();
    for (const Stall& stall : shared_.programme.stalls) {
      const auto begin = shared_.first_request + stall.at;
      const auto end = begin + stall.duration;
      if (stall.connection || begin > now || end <= now) continue;
      sleep_until(end);
      shared_.record.stalled(stall, now, Clock::now());
    }
  }

  void sleep_until(Clock::time_point end) {
    pollfd told{shared_.signals.get(), POLLIN, 0};
    for (auto left = end - Clock::now(); left.count() > 0; left = end - Clock::now()) {
      const auto sleep = std::max(left - shared_.programme.look_out, Clock::duration{0});
      const auto s = std::chrono::duration_cast<std::chrono::seconds>(sleep);
      const timespec timeout{s.count(), (sleep - s).count()};
      if (ppoll(&told, 1, &timeout, nullptr) > 0) return;
    }
  }

  void end() {
    shared_.grace.start();
    listener_.reset();
    shared_.clients.stop_receiving();
    shared_.loop.at(shared_.grace.end(), callback<&Server::look_at_the_time>(*this));
  }

  void look_at_the_time() {}  // run() does, after the turn that this callback ended the wait of

  Shared shared_;
  UniqueFd listener_;
  Gate<Callback> acceptable_;
  Gate<Callback> told_;
  std::uint64_t accepted_ = 0;
};

/// Its connections inherit it from the listener (socket(7)).
void limit_receive_buffer(int listener, std::size_t bytes) {
  const auto size = static_cast<int>(bytes);
  if (size > 0 && setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0)
    die(std::string{"SO_RCVBUF: "} + std::strerror(errno));
}

}  // namespace
}  // namespace netdyno::calibration

int main(int argc, char** argv) {
  using namespace netdyno;
  const calibration::Settings settings = calibration::parse_settings(argc, argv);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(settings.server, true);
  calibration::limit_receive_buffer(listener.get(), settings.programme.receive_buffer);
  const Url endpoint = local_endpoint(listener.get());
  calibration::Server server{settings, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  server.print_totals();
}
