// An instrument, not a contestant: answers after exactly programmed delays, with programmed stalls and faults, and
// tells at the end what it did. One thread, on the loop of the epoll family.
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client.hpp"
#include "lib/measure/witness.hpp"
#include "servers/_shared/calibration/standstill.hpp"

namespace netdyno::calibration {
namespace {

class Server {
 public:
  Server(const Settings& settings, UniqueFd listener, UniqueFd signals)
      : shared_{settings, std::move(signals)},
        listener_(std::move(listener)),
        acceptable_(shared_.loop, listener_.get()),
        stop_signal_(shared_.loop, shared_.signals.get()) {
    shared_.on_first_request = callback<&Server::set_stalls>(*this);
  }

  /// Returns after a shutdown signal, once all connections are done or the grace is over.
  void run() {
    accept_all();
    stop_signal_.when_readable(callback<&Server::end>(*this));
    while (!shared_.grace.over() && (listener_ || !shared_.clients.empty())) {
      shared_.loop.turn();
      shared_.clients.end_turn();
    }
    shared_.clients.clear();
  }

  void print_totals(std::vector<load::Witness::Pause> pauses) {
    shared_.record.take_pauses(std::move(pauses));
    record_stalls_of_connections();
    netdyno::print_totals(shared_.counters.totals(), "calibration", shared_.record.json());
  }

 private:
  /// Accepts all waiting connections, then waits for more; when descriptors or memory ran out, for 10 ms.
  void accept_all() {
    Accepted next = accept_next(listener_.get(), true);
    for (; next.status == AcceptStatus::accepted; next = accept_next(listener_.get(), true)) add(std::move(next.fd));
    if (next.status == AcceptStatus::try_again) {
      acceptable_.when_readable(callback<&Server::accept_all>(*this));
    } else if (next.status == AcceptStatus::exhausted) {
      shared_.loop.call_at(Clock::now() + std::chrono::milliseconds{10}, callback<&Server::accept_all>(*this));
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), shared_.options.nodelay);
    if (shared_.programme.arrival_times) keep_arrival_times(fd.get());
    shared_.counters.add_connection();
    auto client = std::make_unique<Client>(std::move(fd), shared_, ++accepted_);
    if (!client->watch()) return;  // no room: this client is closed
    client->start();
    shared_.clients.add(std::move(client));
  }

  void set_stalls() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto begin = shared_.first_request + stall.begin;
      if (!stall.connection) shared_.loop.call_at(begin, callback<&Server::stall_all>(*this));
    }
  }

  /// Records the stalls that met a connection. They are held to the clock, so they are as long as programmed.
  void record_stalls_of_connections() {
    for (const Stall& stall : shared_.programme.stalls) {
      const auto end = shared_.first_request + stall.begin + stall.duration;
      if (stall.connection && shared_.begun && *stall.connection <= accepted_ && end <= Clock::now())
        shared_.record.note_stall(stall, end - stall.duration, end);
    }
  }

  void stall_all() { stand_still(shared_.programme, shared_.first_request, shared_.signals.get(), shared_.record); }

  void end() {
    shared_.grace.start();
    listener_.reset();
    shared_.clients.stop_receiving();
    shared_.loop.wake_at(shared_.grace.end());
  }

  Shared shared_;
  UniqueFd listener_;
  Gate<Callback> acceptable_;
  Gate<Callback> stop_signal_;
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
  const calibration::Settings settings = calibration::parse_settings(argc, argv, "tcp");
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(settings.server, true);
  calibration::limit_receive_buffer(listener.get(), settings.programme.receive_buffer);
  const Url endpoint = local_endpoint(listener.get());
  calibration::Server server{settings, std::move(listener), std::move(signals)};
  load::Witness witness{settings.programme.to_witness};
  announce_ready(endpoint);

  server.run();
  server.print_totals(witness.stop());
}
