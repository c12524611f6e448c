// N processes with blocking I/O share one listener: each blocks in accept(2), and serves that client to its end before
// it accepts the next.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <thread>
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
  Server(const ServerOptions& options, int listener) : options_(options), listener_(listener) {}

  /// Parent only.
  void start_processes() {
    for (int i = 0; i < options_.threads; ++i)
      if (!start_process()) die("cannot start a process; ask for fewer --threads, or raise ulimit -u");
  }

  /// Parent only. Returns on a shutdown signal.
  void replace_crashed_until(int stop) {
    pollfd watched[] = {{stop, POLLIN, 0}, {children_.ended(), POLLIN, 0}};
    while (true) {
      poll(watched, 2, -1);
      if (watched[0].revents != 0) return;
      for (std::size_t crashed = children_.reap(); crashed > 0; --crashed) start_process();
    }
  }

  /// Parent only. Stops accepting, ends every stream at what has arrived, and waits for the processes, which it kills
  /// when the grace runs out.
  void finish() {
    shutdown(listener_, SHUT_RDWR);  // every process that blocks in accept(2) is woken, with EINVAL
    children_.finish();
  }

  Totals totals() const { return counters_.get().totals(); }

 private:
  bool start_process() {
    return children_.start([this] { accept_and_serve(); });
  }

  /// One of the N processes: it serves one client to its end before it accepts the next.
  void accept_and_serve() {
    while (true) {
      Accepted next = accept_next(listener_, false);
      if (next.status == AcceptStatus::not_listening) return;
      if (next.status == AcceptStatus::accepted) serve_and_leave(std::move(next.fd));
      if (next.status == AcceptStatus::exhausted) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

  void serve_and_leave(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    set_send_timeout(fd.get(), blocking_send_timeout);
    counters_.get().add_connection();
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
  const int listener_;
  const SharedCounters counters_;
  Children children_;
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::any);
  if (options.workload == Workload::chat)
    usage_error(program_name(argv[0]), "--workload: chat needs the clients of other processes; use another workload");
  const UniqueFd stop = termination_signals();
  const UniqueFd listener = listen_tcp(options, false);
  Server server{options, listener.get()};
  server.start_processes();
  announce_ready(local_endpoint(listener.get()));

  server.replace_crashed_until(stop.get());
  server.finish();
  print_totals(server.totals());
}
