#include "loadgen/transport/tcp.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <span>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/net/send.hpp"
#include "loadgen/transport/read_sampler.hpp"
#include "loadgen/transport/route.hpp"
#include "loadgen/transport/socket_address.hpp"
#include "loadgen/transport/socket_poller.hpp"

namespace netdyno::load {
namespace {

// glibc's send and recv are cancellation points: in a program with threads each call also switches deferred
// cancellation on and off, which was a tenth of the generator's own CPU. These threads are never cancelled; syscall(2)
// has no such detour.

ssize_t send_now(int fd, std::string_view bytes) {
  return syscall(SYS_sendto, fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
}

ssize_t receive_now(int fd, std::span<char> into) {
  return syscall(SYS_recvfrom, fd, into.data(), into.size(), 0, nullptr, nullptr);
}

/// epoll, edge-triggered: level-triggered, the kernel asks every socket that it has reported a second time, in the next
/// wait, whether there is more. A recv that does not fill the buffer has emptied the socket (epoll(7), question 9), and
/// what comes after it is a new edge. One recv a turn keeps a chatty connection from holding up the others: one that
/// filled the buffer has its next turn after all others.
class TcpTransport final : public Transport {
 public:
  TcpTransport(const LoadPlan& plan, const ThreadShare& share)
      : share_(share),
        nodelay_(plan.nodelay),
        send_buffer_(static_cast<int>(plan.send_buffer)),
        servers_(plan.unix_socket.empty() ? resolve(plan.url.host, plan.url.port)
                                          : std::vector{unix_address(plan.unix_socket)}),
        route_(servers_.size(), share.size(), plan.connect_timeout),
        sources_(resolve_sources(plan.source_ips)),
        sampler_(share.thread, plan.ends_times_with_stamps()),
        fds_(share.size()),
        connecting_(share.size()),
        reset_(share.size()) {}

  void connect(std::uint32_t connection, TransportEvents& events) override {
    route_.begin(connection, now_ns());
    try_address(connection, events);
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    const int fd = fds_[connection].get();
    const ssize_t sent = send_now(fd, bytes);
    const std::size_t taken = sent > 0 ? static_cast<std::size_t>(sent) : 0;
    // A connection that is gone says so in its next event, after what it still has to deliver. But a reset is reported
    // once (socket(7), SO_ERROR), so it is stored here.
    if (sent < 0 && errno == ECONNRESET) reset_[connection] = true;
    const bool full = sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
    if (taken < bytes.size() && full) poller_.modify(fd, readable | EPOLLOUT, connection);
    return taken;
  }

  void close(std::uint32_t connection) override {
    if (connecting_[connection] && !queue_.empty()) std::erase(queue_, connection);
    connecting_[connection] = false;
    fds_[connection].reset();
  }

  UniqueFd release(std::uint32_t connection) override {
    poller_.remove(fds_[connection].get());
    return std::move(fds_[connection]);
  }

  bool wait(Nanos until, TransportEvents& events) override {
    if (!queue_.empty()) until = std::min(until, queue_at_);
    until = std::min(until, route_.due());
    const auto ready = poller_.wait(unfinished_.empty() ? until : 0);
    for (const epoll_event& event : ready)
      if (!poller_.was_wake(event)) handle(static_cast<std::uint32_t>(event.data.u64), event.events, events);
    next_turn_.swap(unfinished_);
    for (const std::uint32_t connection : next_turn_)
      if (fds_[connection] && !connecting_[connection]) receive(connection, true, events);
    const bool any = !ready.empty() || !next_turn_.empty();
    next_turn_.clear();
    leave_silent_addresses(events);
    return leave_queue(events) || any;
  }

  void sample_arrivals(Nanos span) override { sampler_.settle(span); }

  void wake() override { poller_.wake(); }

  bool unacknowledged(std::uint32_t connection) const override {
    tcp_info info{};
    socklen_t size = sizeof info;
    // Asked of the file of a Unix socket, this is an error: there, nothing is on its way.
    return fds_[connection] && getsockopt(fds_[connection].get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_retransmits > 0 && info.tcpi_unacked > 0;
  }

 private:
  static constexpr std::uint32_t readable = EPOLLIN | EPOLLRDHUP | EPOLLET;
  static constexpr std::uint32_t ending = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  static constexpr Nanos between_queuings = 1'000'000;

  /// Connects to the next address of its route, as far as that goes at once.
  void try_address(std::uint32_t connection, TransportEvents& events) {
    const int error = begin_connect(connection);
    if (error == EINPROGRESS) {
      connecting_[connection] = true;
      poller_.add(fds_[connection].get(), EPOLLOUT, connection);
    } else if (error == EAGAIN && is_unix()) {
      connecting_[connection] = true;
      if (queue_.empty()) queue_at_ = now_ns() + between_queuings;
      queue_.push_back(connection);
    } else if (error == 0) {
      poller_.add(fds_[connection].get(), readable, connection);
      stand(connection, events);
    } else {
      leave_address(connection, error, events);
    }
  }

  void stand(std::uint32_t connection, TransportEvents& events) {
    connecting_[connection] = false;
    route_.arrived(connection);
    events.on_connected(connection);
  }

  /// The address leads nowhere: to the next one, or the connect has failed.
  void leave_address(std::uint32_t connection, int error, TransportEvents& events) {
    close(connection);
    if (route_.take_next(connection, error, now_ns())) return try_address(connection, events);
    const int why = route_.error(connection, error);
    events.on_connect_failed(connection, connect_failure(why), why);
  }

  void leave_silent_addresses(TransportEvents& events) {
    if (route_.due() == never) return;
    while (const auto connection = route_.take_expired(now_ns()))
      if (connecting_[*connection]) leave_address(*connection, ETIMEDOUT, events);
  }

  bool is_unix() const { return servers_.front().storage.ss_family == AF_UNIX; }

  /// The server may have made room: they connect in the order in which they came, as far as that goes.
  bool leave_queue(TransportEvents& events) {
    if (queue_.empty() || now_ns() < queue_at_) return false;
    bool any = false;
    for (std::size_t left = queue_.size(); left > 0 && !queue_.empty(); --left) {
      const std::uint32_t connection = queue_.front();
      const SocketAddress& server = servers_.front();
      const int error = ::connect(fds_[connection].get(), server.get(), server.size) == 0 ? 0 : errno;
      if (error == EAGAIN) break;
      any = true;
      queue_.pop_front();
      if (error == 0) {
        poller_.add(fds_[connection].get(), readable, connection);
        stand(connection, events);
      } else {
        leave_address(connection, error, events);
      }
    }
    queue_at_ = now_ns() + between_queuings;
    return any;
  }

  /// 0, EINPROGRESS or why not; over a Unix socket EAGAIN where the server's queue is full, and no event will tell that
  /// it is not any more (connect(2)).
  int begin_connect(std::uint32_t connection) {
    UniqueFd& fd = fds_[connection];
    const SocketAddress& server = servers_[route_.address(connection)];
    reset_[connection] = false;
    fd.reset(socket(server.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return errno;
    set_nodelay(fd.get(), nodelay_);
    keep_arrival_times(fd.get());
    if (send_buffer_ > 0 && setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &send_buffer_, sizeof send_buffer_) != 0)
      return errno;
    if (!sources_.empty()) {
      const SocketAddress* const source = find_source(sources_[share_.global(connection) % sources_.size()], server);
      if (source == nullptr) return EADDRNOTAVAIL;
      // ip(7): the port is chosen at connect, when the whole four-tuple is known, so that each source address has all.
      const int on = 1;
      setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      if (bind(fd.get(), source->get(), source->size) != 0) return errno;
    }
    if (!queue_.empty()) return EAGAIN;
    return ::connect(fd.get(), server.get(), server.size) == 0 ? 0 : errno;
  }

  void handle(std::uint32_t connection, std::uint32_t what, TransportEvents& events) {
    if (!fds_[connection]) return;  // let go of while an earlier event of this batch was handled
    if (connecting_[connection]) return finish_connect(connection, events);
    if ((what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive(connection, (what & ending) != 0, events);
    if ((what & EPOLLOUT) != 0 && fds_[connection] && !connecting_[connection]) {
      poller_.modify(fds_[connection].get(), readable, connection);
      events.on_writable(connection);
    }
  }

  void finish_connect(std::uint32_t connection, TransportEvents& events) {
    const int error = socket_error(fds_[connection].get());
    if (error != 0) return leave_address(connection, error, events);
    poller_.modify(fds_[connection].get(), readable, connection);
    stand(connection, events);
  }

  /// `last_edge`: what follows, perhaps the end of the stream, will not be another edge.
  void receive(std::uint32_t connection, bool last_edge, TransportEvents& events) {
    const int fd = fds_[connection].get();
    KernelStamp arrived;
    const ssize_t n = sampler_.take() ? receive_stamped(fd, buffer_, 0, arrived) : receive_now(fd, buffer_);
    if (n == static_cast<ssize_t>(buffer_.size()) || (n > 0 && last_edge) || (n < 0 && errno == EINTR))
      unfinished_.push_back(connection);
    if (n > 0) return events.on_received(connection, {buffer_.data(), static_cast<std::size_t>(n)}, arrived);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(connection);
    const bool ended = n == 0 && !reset_[connection];
    events.on_closed(connection, ended ? CloseReason::closed_by_server : CloseReason::reset);
  }

  ThreadShare share_;
  bool nodelay_;
  int send_buffer_;
  std::vector<SocketAddress> servers_;
  Route route_;
  std::vector<std::vector<SocketAddress>> sources_;
  ReadSampler sampler_;
  SocketPoller poller_;
  std::vector<UniqueFd> fds_;
  std::vector<bool> connecting_;
  std::vector<bool> reset_;
  std::deque<std::uint32_t> queue_;        // before a Unix socket whose own is full
  Nanos queue_at_ = 0;                     // when they try again
  std::vector<std::uint32_t> unfinished_;  // those that may hold more than was read
  std::vector<std::uint32_t> next_turn_;   // they, while they have it
  std::array<char, 64 << 10> buffer_{};    // one for all connections of the thread
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const LoadPlan& plan, const ThreadShare& share) {
  return std::make_unique<TcpTransport>(plan, share);
}

}  // namespace netdyno::load
