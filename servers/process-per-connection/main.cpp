// A process per connection with blocking I/O: one process accepts, and forks a child that serves the connection.
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/cli/command_line.hpp"
#include "lib/server/blocking_client.hpp"
#include "lib/server/children.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/shared_counters.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/alone/carry_out.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  explicit Server(const ServerOptions& options) : options_(options) {}

  /// Parent only. Returns on a shutdown signal.
  void accept_until(int stop, UniqueFd& listener) {
    pollfd watched[] = {{stop, POLLIN, 0}, {children_.ended(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    while (true) {
      Accepted next = accept_next(listener.get(), false);
      if (next.status == AcceptStatus::accepted) start(std::move(next.fd), listener);
      // Out of descriptors: the queue stays readable, so try again only after a while.
      const bool exhausted = next.status == AcceptStatus::exhausted;
      poll(watched, exhausted ? 2 : 3, exhausted ? 10 : -1);
      if (watched[0].revents != 0) return;
      if (watched[1].revents != 0) children_.reap();
    }
  }

  /// Parent only. Ends every stream at what has arrived, and waits for the children, which it kills when the grace runs
  /// out.
  void finish() { children_.finish(); }

  Totals totals() const { return counters_.get().totals(); }

 private:
  void start(UniqueFd fd, UniqueFd& listener) {
    set_nodelay(fd.get(), options_.nodelay);
    set_send_timeout(fd.get(), blocking_send_timeout);
    counters_.get().add_connection();
    // No more processes to be had: this client is closed, the others go on.
    children_.start([&] {
      listener.reset();  // when the parent closes it, no client may connect any more
      run(std::move(fd));
    });
  }

  /// The connection's own process.
  void run(UniqueFd fd) {
    {
      const BlockingClient client{fd.get()};
      serve(fd.get());
    }
    end_stream(fd.get());
  }

  void serve(int fd) {
    const auto session = make_session(options_, counters_.get());
    Effects effects{options_.write_mode};
    const auto buffer = std::make_unique_for_overwrite<char[]>(options_.read_buffer);  // touched by reads only
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
      open = carry_out(effects, fd, counters_.get());
    }
  }

  const ServerOptions& options_;
  const SharedCounters counters_;
  Children children_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::per_connection);
  if (options.workload == Workload::chat)
    usage_error(program_name(argv[0]), "--workload: chat needs the clients of other processes; use another workload");
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  Server server{options};
  announce_ready(local_endpoint(listener.get()));

  server.accept_until(stop.get(), listener);
  listener.reset();
  server.finish();
  print_totals(server.totals());
}
