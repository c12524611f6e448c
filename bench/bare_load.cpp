// The least a load generator can do: connect, keep one message in flight on each connection, receive, count. It
// verifies nothing and times nothing, so what netdyno-load is slower than this is what verification and histograms
// cost.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/measure/clock.hpp"
#include "lib/net/descriptor.hpp"
#include "lib/net/send.hpp"

using namespace netdyno;
using load::Nanos;

namespace {

constexpr std::size_t message_size = 31;
const std::string message(message_size, 'm');

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    die("connect: " + std::string{std::strerror(errno)});
  set_nodelay(fd, true);
  return fd;
}

void send_one(int fd) {
  if (send(fd, message.data(), message.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(message.size())) die("send");
}

/// Goes round until `end`; returns the messages that came back.
std::uint64_t round_trips(int epoll, Nanos end) {
  std::array<epoll_event, 256> events;
  std::array<char, 64 << 10> buffer;
  std::uint64_t bytes = 0;
  while (load::now_ns() < end) {
    const int count = epoll_wait(epoll, events.data(), events.size(), 100);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) die("the server left");
      bytes += static_cast<std::uint64_t>(n);
      send_one(fd);
    }
  }
  return bytes / message_size;
}

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) die("usage: bare_load PORT CONNECTIONS WARMUP_S DURATION_S");
  const int connections = std::atoi(argv[2]);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> fds;
  for (int i = 0; i < connections; ++i) {
    fds.push_back(connect_to(static_cast<std::uint16_t>(std::atoi(argv[1]))));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fds.back();
    epoll_ctl(epoll, EPOLL_CTL_ADD, fds.back(), &event);
  }
  for (const int fd : fds) send_one(fd);

  round_trips(epoll, load::now_ns() + static_cast<Nanos>(std::atof(argv[3]) * 1e9));
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const Nanos start = load::now_ns();
  const std::uint64_t completed = round_trips(epoll, start + static_cast<Nanos>(std::atof(argv[4]) * 1e9));
  const double elapsed = load::seconds(load::now_ns() - start);
  getrusage(RUSAGE_SELF, &after);
  fmt::print(R"({{"completed":{},"per_second":{:.1f},"cpu_user_s":{:.4f},"cpu_system_s":{:.4f}}})"
             "\n",
             completed, static_cast<double>(completed) / elapsed, seconds(after.ru_utime) - seconds(before.ru_utime),
             seconds(after.ru_stime) - seconds(before.ru_stime));
}
