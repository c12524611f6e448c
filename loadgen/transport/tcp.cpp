#include "loadgen/transport/tcp.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "common/socket.hpp"

namespace netdyno::load {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// glibc's send and recv are cancellation points: in a program with threads each call also switches deferred
// cancellation on and off, which was a tenth of the generator's own CPU. Nobody cancels these threads; syscall(2) has
// no such detour.

ssize_t send_now(int fd, std::string_view bytes) {
  return syscall(SYS_sendto, fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
}

ssize_t receive_now(int fd, std::span<char> into) {
  return syscall(SYS_recvfrom, fd, into.data(), into.size(), 0, nullptr, nullptr);
}

/// An address of a host, IPv4 where it has one: `localhost` is ::1 first, and servers listen on 127.0.0.1. Ends the
/// program when there is none.
Address resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) die(fmt::format("cannot resolve '{}': {}", host, gai_strerror(error)));
  const addrinfo* best = found;
  for (const addrinfo* other = found; other != nullptr && best->ai_family != AF_INET; other = other->ai_next)
    if (other->ai_family == AF_INET) best = other;
  Address address;
  std::memcpy(&address.storage, best->ai_addr, best->ai_addrlen);
  address.size = best->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

std::vector<Address> resolve_sources(const std::vector<std::string>& hosts) {
  std::vector<Address> sources;
  for (const auto& host : hosts) sources.push_back(resolve(host, 0));
  return sources;
}

ConnectFailure classify(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ConnectFailure::refused;
    case ETIMEDOUT:
      return ConnectFailure::timed_out;
    case ECONNRESET:
      return ConnectFailure::reset;
    default:
      return ConnectFailure::other;
  }
}

int socket_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// epoll, edge-triggered: level-triggered, the kernel asks every socket that it has reported a second time, in the next
/// wait, whether there is more. A recv that does not fill the buffer has emptied the socket (epoll(7), question 9), and
/// what comes after it is a new edge. One recv a turn keeps a chatty connection from holding up the others: what filled
/// the buffer has its next turn after everybody else.
class TcpTransport final : public Transport {
 public:
  TcpTransport(const LoadPlan& plan, const Slice& slice)
      : slice_(slice),
        nodelay_(plan.nodelay),
        server_(resolve(plan.url.host, plan.url.port)),
        sources_(resolve_sources(plan.source_ips)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        fds_(slice.size()),
        connecting_(slice.size()),
        reset_(slice.size()) {
    if (!epoll_ || !wake_) die(fmt::format("epoll: {}", std::strerror(errno)));
    control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, wake_mark);
  }

  void connect(std::uint32_t connection, TransportEvents& events) override {
    const int error = begin_connect(connection);
    const int fd = fds_[connection].get();
    if (error == 0) {
      control(EPOLL_CTL_ADD, fd, readable, connection);
      events.on_connected(connection);
    } else if (error == EINPROGRESS) {
      connecting_[connection] = true;
      control(EPOLL_CTL_ADD, fd, EPOLLOUT, connection);
    } else {
      close(connection);
      events.on_connect_failed(connection, classify(error), error);
    }
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    const int fd = fds_[connection].get();
    const ssize_t sent = send_now(fd, bytes);
    const std::size_t taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
    // A connection that is gone says so in its next event, after what it still has to deliver. But a reset is reported
    // once (socket(7), SO_ERROR): who hears of it here has to remember.
    if (sent < 0 && errno == ECONNRESET) reset_[connection] = true;
    const bool full = sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
    if (taken < bytes.size() && full) control(EPOLL_CTL_MOD, fd, readable | EPOLLOUT, connection);
    return taken;
  }

  void close(std::uint32_t connection) override {
    connecting_[connection] = false;
    fds_[connection].reset();
  }

  bool wait(Nanos until, TransportEvents& events) override {
    const int count = poll(unfinished_.empty() ? until : 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = ready_[static_cast<std::size_t>(i)];
      if (event.data.u64 == wake_mark) {
        std::uint64_t unused = 0;
        [[maybe_unused]] const ssize_t n = read(wake_.get(), &unused, sizeof unused);
      } else {
        handle(static_cast<std::uint32_t>(event.data.u64), event.events, events);
      }
    }
    next_turn_.swap(unfinished_);
    for (const std::uint32_t connection : next_turn_)
      if (fds_[connection]) receive(connection, true, events);
    const bool any = count > 0 || !next_turn_.empty();
    next_turn_.clear();
    return any;
  }

  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
  }

 private:
  static constexpr std::uint64_t wake_mark = ~0ULL;
  static constexpr std::uint32_t readable = EPOLLIN | EPOLLRDHUP | EPOLLET;
  static constexpr std::uint32_t ending = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

  /// 0, EINPROGRESS or why not.
  int begin_connect(std::uint32_t connection) {
    UniqueFd& fd = fds_[connection];
    fd.reset(socket(server_.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return errno;
    set_nodelay(fd.get(), nodelay_);
    if (!sources_.empty()) {
      const Address& source = sources_[slice_.global(connection) % sources_.size()];
      // ip(7): the port is chosen at connect, when the whole four-tuple is known, so that each source address has all.
      const int on = 1;
      setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      if (bind(fd.get(), source.get(), source.size) != 0) return errno;
    }
    return ::connect(fd.get(), server_.get(), server_.size) == 0 ? 0 : errno;
  }

  void handle(std::uint32_t connection, std::uint32_t what, TransportEvents& events) {
    if (!fds_[connection]) return;  // let go of while an earlier event of this batch was handled
    if (connecting_[connection]) return finish_connect(connection, events);
    if ((what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive(connection, (what & ending) != 0, events);
    if ((what & EPOLLOUT) != 0 && fds_[connection]) {
      control(EPOLL_CTL_MOD, fds_[connection].get(), readable, connection);
      events.on_writable(connection);
    }
  }

  void finish_connect(std::uint32_t connection, TransportEvents& events) {
    const int error = socket_error(fds_[connection].get());
    if (error == 0) {
      connecting_[connection] = false;
      control(EPOLL_CTL_MOD, fds_[connection].get(), readable, connection);
      events.on_connected(connection);
    } else {
      close(connection);
      events.on_connect_failed(connection, classify(error), error);
    }
  }

  /// `last_edge`: what follows, perhaps the end of the stream, will not be another edge.
  void receive(std::uint32_t connection, bool last_edge, TransportEvents& events) {
    const ssize_t n = receive_now(fds_[connection].get(), buffer_);
    if (n == static_cast<ssize_t>(buffer_.size()) || (n > 0 && last_edge) || (n < 0 && errno == EINTR))
      unfinished_.push_back(connection);
    if (n > 0) return events.on_received(connection, {buffer_.data(), static_cast<std::size_t>(n)});
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(connection);
    const bool ended = n == 0 && !reset_[connection];
    events.on_closed(connection, ended ? CloseReason::closed_by_server : CloseReason::reset);
  }

  /// epoll_pwait2(2) (Linux 5.11, glibc 2.35) takes nanoseconds; epoll_wait rounds to milliseconds, which is the error
  /// that makes other generators late.
  int poll(Nanos until) {
    const Nanos left = until == never ? 0 : until - now_ns();
    const timespec timeout{left / one_second, left % one_second};
    constexpr timespec at_once{0, 0};
    const timespec* limit = until == never ? nullptr : left > 0 ? &timeout : &at_once;
    const int count = epoll_pwait2(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), limit, nullptr);
    if (count < 0 && errno != EINTR)
      die(fmt::format("epoll_pwait2: {}{}", std::strerror(errno), errno == ENOSYS ? " (needs Linux 5.11)" : ""));
    return count;
  }

  void control(int operation, int fd, std::uint32_t events, std::uint64_t mark) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = mark;
    if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0) die(fmt::format("epoll_ctl: {}", std::strerror(errno)));
  }

  Slice slice_;
  bool nodelay_;
  Address server_;
  std::vector<Address> sources_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::vector<UniqueFd> fds_;
  std::vector<bool> connecting_;
  std::vector<bool> reset_;
  std::vector<std::uint32_t> unfinished_;  // those that may hold more than was read
  std::vector<std::uint32_t> next_turn_;   // they, while they have it
  std::array<epoll_event, 256> ready_{};
  std::array<char, 64 << 10> buffer_{};  // one for all connections of the thread
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const LoadPlan& plan, const Slice& slice) {
  return std::make_unique<TcpTransport>(plan, slice);
}

}  // namespace netdyno::load
