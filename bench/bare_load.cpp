// The least a load generator can do: connect, keep one message in flight on each connection, receive, count, over epoll
// or io_uring; or send at a rate, over epoll. It verifies nothing and times nothing, so what netdyno-load is slower
// than this is what verification and histograms cost, and what the second is faster than the first is the most that
// io_uring could give it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/measure/clock.hpp"
#include "lib/measure/process.hpp"
#include "lib/net/descriptor.hpp"
#include "lib/net/send.hpp"
#ifdef NETDYNO_WITH_URING
#include "servers/_shared/uring/receive_buffers.hpp"
#include "servers/_shared/uring/ring.hpp"
#endif

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

/// Sockets that epoll watches.
class Sockets {
 public:
  explicit Sockets(const std::vector<int>& fds) {
    for (const int fd : fds) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }
  }

  /// Reads what is there, and calls `answer(fd)` after each read. Returns how many bytes came.
  template <typename Answer>
  std::uint64_t receive(int timeout_ms, Answer answer) {
    const int count = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), timeout_ms);
    std::uint64_t bytes = 0;
    for (int i = 0; i < count; ++i) {
      const int fd = events_[static_cast<std::size_t>(i)].data.fd;
      const ssize_t n = recv(fd, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) die("the server left");
      bytes += static_cast<std::uint64_t>(n);
      answer(fd);
    }
    return bytes;
  }

 private:
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::array<epoll_event, 256> events_;
  std::array<char, 64 << 10> buffer_;
};

/// One message in flight on each of its connections, over epoll.
class EpollLoad {
 public:
  explicit EpollLoad(const std::vector<int>& fds) : sockets_(fds) {
    for (const int fd : fds) send_one(fd);
  }

  /// Goes round until `end`; returns the messages that came back.
  std::uint64_t make_round_trips(Nanos end) {
    std::uint64_t bytes = 0;
    while (load::now_ns() < end) bytes += sockets_.receive(100, send_one);
    return bytes / message_size;
  }

 private:
  Sockets sockets_;
};

/// A message at each moment of a schedule, on the connections in turn. It wakes for nothing else, and reads then what
/// has come since.
class PacedLoad {
 public:
  PacedLoad(const std::vector<int>& fds, double rate_hz)
      : fds_(fds), gap_(static_cast<Nanos>(1e9 / rate_hz)), sockets_(fds) {}

  std::uint64_t make_round_trips(Nanos end) {
    std::uint64_t bytes = 0;
    for (Nanos due = load::now_ns(); due < end; due += gap_) {
      const timespec moment{due / 1'000'000'000, due % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr);
      bytes += sockets_.receive(0, [](int) {});
      send_one(fds_[next_++ % fds_.size()]);
    }
    return bytes / message_size;
  }

 private:
  const std::vector<int> fds_;
  const Nanos gap_;
  Sockets sockets_;
  std::size_t next_ = 0;
};

#ifdef NETDYNO_WITH_URING
/// As EpollLoad, over io_uring, with all that it has for this: one call of the kernel a turn, which sends all that the
/// turn asked for; multishot receives into buffers that the kernel chooses; registered files; no completion of a send.
class UringLoad {
 public:
  explicit UringLoad(const std::vector<int>& fds) {
    ring_.enable();
    const int error = -io_uring_register_files(ring_.get(), fds.data(), static_cast<unsigned>(fds.size()));
    if (error != 0) die("io_uring_register_files: " + std::string{std::strerror(error)});
    for (int index = 0; index < static_cast<int>(fds.size()); ++index) {
      RegisteredSocket& socket = sockets_.emplace_back(index, *this);
      receive(socket);
      send_one(socket);
    }
  }

  std::uint64_t make_round_trips(Nanos end) {
    bytes_ = 0;
    while (load::now_ns() < end) {
      ring_.submit_and_wait();
      ring_.dispatch();
    }
    return bytes_ / message_size;
  }

 private:
  struct RegisteredSocket {
    RegisteredSocket(int file, UringLoad& its_load) : index(file), load(its_load) {}

    void on_received(Completion completion) { load.on_received(*this, completion); }
    void on_send_failed(Completion) { die("send"); }

    const int index;
    UringLoad& load;
    Operation receiving = operation<&RegisteredSocket::on_received>(*this);
    Operation sending = operation<&RegisteredSocket::on_send_failed>(*this);
  };

  void receive(RegisteredSocket& socket) {
    ring_.ask(socket.receiving, [&](io_uring_sqe* entry) {
      io_uring_prep_recv_multishot(entry, socket.index, nullptr, 0, 0);
      entry->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
      entry->buf_group = ReceiveBuffers::group;
    });
  }

  void send_one(RegisteredSocket& socket) {
    ring_.ask(socket.sending, [&](io_uring_sqe* entry) {
      io_uring_prep_send(entry, socket.index, message.data(), message.size(), MSG_NOSIGNAL);
      entry->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
    });
  }

  void on_received(RegisteredSocket& socket, Completion completion) {
    if (completion.result > 0) {
      bytes_ += buffers_.bytes(completion).size();
      buffers_.give_back(completion);
      send_one(socket);
    } else if (completion.result != -ENOBUFS) {
      die("the server left");
    }
    if (!socket.receiving.in_flight()) receive(socket);
  }

  static constexpr std::size_t buffer_size = 4096;

  Ring ring_;
  ReceiveBuffers buffers_{ring_, buffer_size};
  std::deque<RegisteredSocket> sockets_;  // they stay where they are
  std::uint64_t bytes_ = 0;
};
#endif

template <typename Load>
void measure(Load& load, Nanos warmup, Nanos duration) {
  load.make_round_trips(load::now_ns() + warmup);
  const load::CpuTime before = load::process_cpu();
  const Nanos start = load::now_ns();
  const std::uint64_t completed = load.make_round_trips(start + duration);
  const double elapsed = load::seconds(load::now_ns() - start);
  const load::CpuTime used = load::process_cpu() - before;
  fmt::print(R"({{"completed":{},"per_second":{:.1f},"cpu_user_s":{:.4f},"cpu_system_s":{:.4f}}})"
             "\n",
             completed, static_cast<double>(completed) / elapsed, used.user_s, used.system_s);
}

Nanos parse_seconds(const char* seconds) { return static_cast<Nanos>(std::atof(seconds) * 1e9); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) die("usage: bare_load epoll|uring|RATE PORT CONNECTIONS WARMUP_S DURATION_S");
  std::vector<int> fds;
  for (int i = 0; i < std::atoi(argv[3]); ++i)
    fds.push_back(connect_to(static_cast<std::uint16_t>(std::atoi(argv[2]))));
  const std::string_view kind{argv[1]};
  if (kind == "epoll") {
    EpollLoad load{fds};
    measure(load, parse_seconds(argv[4]), parse_seconds(argv[5]));
#ifdef NETDYNO_WITH_URING
  } else if (kind == "uring") {
    UringLoad load{fds};
    measure(load, parse_seconds(argv[4]), parse_seconds(argv[5]));
#endif
  } else if (const double rate_hz = std::atof(argv[1]); rate_hz > 0) {
    PacedLoad load{fds, rate_hz};
    measure(load, parse_seconds(argv[4]), parse_seconds(argv[5]));
  } else {
    die("it has no " + std::string{kind});
  }
}
