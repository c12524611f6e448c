// The C++ Actor Framework: for each connection a broker on CAF's one I/O thread, and a worker on its scheduler.
#include <poll.h>

#include <array>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/after.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "lib/server/lifecycle.hpp"
#include "lib/server/threads.hpp"
#include "messages.hpp"
#include "room.hpp"
#include "shared.hpp"

namespace netdyno {
namespace {

/// Main thread only.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener) : shared_{options}, listener_(std::move(listener)) {
    config_.load<caf::io::middleman>();
    config_.set("scheduler.max-threads", options.threads);
    config_.set("middleman.max-consecutive-reads", 1);  // a second one would find nothing, most of the time
  }

  /// When it returns, `options.threads` threads of the scheduler and that of the loop serve.
  void start() {
    start_or_die([this] { system_.emplace(config_); });
    self_.emplace(*system_);
    caf::actor_config config{&system_->middleman().backend()};
    room_ = system_->spawn_class<Room, caf::no_spawn_options>(config, shared_);
  }

  /// Accepts until `signals` is readable. A doorman of CAF would spin where no descriptor is left, and has a backlog of
  /// its own.
  void accept_until(int signals) {
    std::array<pollfd, 2> watched{{{signals, POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    while (watched[0].revents == 0) {
      if (take_in()) {
        poll(watched.data(), 2, -1);
      } else {
        poll(watched.data(), 1, exhausted_pause_ms);
      }
    }
  }

  /// Ends every stream at what has arrived, and returns when that is answered or the grace is over.
  void finish() {
    take_in();  // connected clients have been promised an answer
    listener_.reset();
    (*self_)->send(room_, ServerEnds{});
    (*self_)->receive([](const RoomEmpty&) {}, caf::after(shutdown_grace) >> [] {});
  }

  Totals totals() const { return shared_.counters.totals(); }

 private:
  static constexpr int exhausted_pause_ms = 10;

  /// Accepts all waiting connections; false when descriptors or memory ran out.
  bool take_in() {
    while (true) {
      Accepted next = accept_next(listener_.get(), true);
      if (next.status != AcceptStatus::accepted) return next.status != AcceptStatus::exhausted;
      shared_.counters.add_connection();
      (*self_)->send(room_, Joined{next.fd.release()});
    }
  }

  Shared shared_;
  UniqueFd listener_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  std::optional<caf::scoped_actor> self_;
  caf::actor room_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  const UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener)};
  server.start();
  announce_ready(endpoint);

  server.accept_until(signals.get());
  server.finish();
  print_totals(server.totals());
  std::_Exit(0);  // CAF would wait for workers that still burn CPU, also of clients that have left; the totals are out
}
