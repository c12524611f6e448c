// The least an echo server can do: one epoll loop that receives and sends back. The common opponent of
// generator_vs_bare.py, so that both generators meet the same server, and of the servers' costs in docs/models.md.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "lib/server/lifecycle.hpp"

using namespace netdyno;

namespace {

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

/// False at the end of the stream.
bool echo(int fd) {
  static std::array<char, 64 << 10> buffer;
  const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
  return n > 0 && send_all(fd, {buffer.data(), static_cast<std::size_t>(n)}) == SendResult::sent;
}

}  // namespace

int main(int argc, char** argv) {
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  const UniqueFd stop = termination_signals();
  const UniqueFd listener = listen_tcp(options, true);
  const UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
  watch(epoll.get(), stop.get());
  watch(epoll.get(), listener.get());
  announce_ready(local_endpoint(listener.get()));

  std::array<epoll_event, 256> events;
  while (true) {
    const int count = epoll_wait(epoll.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == stop.get()) return 0;
      if (fd != listener.get()) {
        if (!echo(fd)) close(fd);
        continue;
      }
      for (Accepted next = accept_next(fd, false); next.status == AcceptStatus::accepted;
           next = accept_next(fd, false)) {
        set_nodelay(next.fd.get(), true);
        watch(epoll.get(), next.fd.release());
      }
    }
  }
}
