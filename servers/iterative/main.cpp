// One thread with blocking I/O serves one connection to its end before it accepts the next.
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/cli/command_line.hpp"
#include "lib/server/blocking_client.hpp"
#include "lib/server/grace.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/alone/carry_out.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  explicit Server(const ServerOptions& options) : options_(options) {}

  /// Returns on a shutdown signal.
  void accept_until(int stop, int listener) {
    pollfd watched[] = {{stop, POLLIN, 0}, {listener, POLLIN, 0}};
    while (true) {
      Accepted next = accept_next(listener, false);
      if (next.status == AcceptStatus::accepted) run(std::move(next.fd));  // all others wait in the listen queue
      // Out of descriptors: the queue stays readable, so try again only after a while.
      const bool exhausted = next.status == AcceptStatus::exhausted;
      poll(watched, exhausted ? 1 : 2, exhausted ? 10 : -1);
      if (watched[0].revents != 0) return;
    }
  }

  const Counters& counters() const { return counters_; }

 private:
  void run(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    set_send_timeout(fd.get(), blocking_send_timeout);
    counters_.add_connection();
    {
      const BlockingClient client{fd.get()};
      serve(fd.get());
    }
    end_stream(fd.get());
  }

  void serve(int fd) {
    const auto session = make_session(options_, counters_);
    Effects effects{options_.write_mode};
    const auto buffer = std::make_unique_for_overwrite<char[]>(options_.read_buffer);  // touched by reads only
    const auto burn = [](auto duration) { return burn_cpu_unless(BlockingClient::grace_over, duration); };
    bool open = true;
    while (open) {
      const ssize_t n = recv(fd, buffer.get(), options_.read_buffer, 0);
      if (n < 0) break;
      effects.clear();
      if (n > 0) {
        session->receive({buffer.get(), static_cast<std::size_t>(n)}, effects);
      } else {
        session->end(effects);
      }
      open = carry_out(effects, fd, counters_, burn);
    }
  }

  const ServerOptions& options_;
  Counters counters_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  if (options.workload == Workload::chat)
    usage_error(program_name(argv[0]), "--workload: chat needs several clients at a time; use another workload");
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  Server server{options};
  announce_ready(local_endpoint(listener.get()));

  server.accept_until(stop.get(), listener.get());
  listener.reset();
  print_totals(server.counters().totals());
}
