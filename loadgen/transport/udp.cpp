#include "loadgen/transport/udp.hpp"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "lib/protocol/handshake.hpp"
#include "loadgen/transport/greeting.hpp"
#include "loadgen/transport/read_sampler.hpp"
#include "loadgen/transport/route.hpp"
#include "loadgen/transport/socket_address.hpp"
#include "loadgen/transport/socket_poller.hpp"

namespace netdyno::load {
namespace {

// System calls without glibc's detour for cancellation points, as in tcp.cpp.

ssize_t send_datagram(int fd, std::string_view bytes) {
  return syscall(SYS_sendto, fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
}

long send_many(int fd, std::span<mmsghdr> messages) {
  return syscall(SYS_sendmmsg, fd, messages.data(), messages.size(), MSG_NOSIGNAL);
}

long receive_many(int fd, std::span<mmsghdr> into) {
  return syscall(SYS_recvmmsg, fd, into.data(), into.size(), 0, nullptr);
}

/// Room for what a whole chat sends at once to a client that is not scheduled for a while: about 10,000 small datagrams
/// (each takes 768 bytes of it on loopback, Linux 6). It is a limit; memory is taken by what comes. Only root may pass
/// net.core.rmem_max (socket(7), SO_RCVBUFFORCE); other users get that much.
void widen_receive_buffer(int fd) {
  constexpr int bytes = 4 << 20;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0) return;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

/// Datagrams that this socket has dropped, because its buffer was full or a checksum wrong (SO_MEMINFO, Linux 4.12).
std::uint64_t drops(int fd) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info.data(), &size) == 0 ? info[SK_MEMINFO_DROPS] : 0;
}

/// One recvmmsg or sendmmsg, and the memory of what is received.
class Batch {
 public:
  static constexpr std::size_t most = 32;

  explicit Batch(std::size_t longest) : longest_(longest), bytes_(most * longest) {
    for (std::size_t i = 0; i < most; ++i) {
      incoming_[i].msg_hdr.msg_iov = &pieces_[i];
      incoming_[i].msg_hdr.msg_iovlen = 1;
      pieces_[i] = {bytes_.data() + i * longest_, longest_};
      outgoing_[i].msg_hdr.msg_iov = &sent_[i];
      outgoing_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  /// How many datagrams came; -1 with errno. `stamped`: they say when they arrived.
  long receive(int fd, bool stamped) {
    if (!stamped) return receive_many(fd, incoming_);
    for (std::size_t i = 0; i < most; ++i) give_room(incoming_[i].msg_hdr, rooms_[i].bytes);
    const long count = receive_many(fd, incoming_);
    for (std::size_t i = 0; i < most; ++i) {
      arrived_[i] = static_cast<long>(i) < count ? stamp_of(incoming_[i].msg_hdr) : KernelStamp{};
      give_room(incoming_[i].msg_hdr, {});
    }
    return count;
  }
  /// Only of a stamped receive.
  KernelStamp arrived(std::size_t i) const { return arrived_[i]; }
  std::string_view received(std::size_t i) const { return {bytes_.data() + i * longest_, incoming_[i].msg_len}; }

  /// Sends the messages of `bytes` up to each of `ends`, of which there are `most` at most. How many went; -1 with
  /// errno.
  long send(int fd, std::string_view bytes, std::size_t from, std::span<const std::size_t> ends) {
    for (std::size_t i = 0; i < ends.size(); from = ends[i++])
      sent_[i] = {const_cast<char*>(bytes.data()) + from, ends[i] - from};
    return send_many(fd, {outgoing_.data(), ends.size()});
  }

 private:
  static void give_room(msghdr& message, std::span<std::byte> room) {
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }

  std::size_t longest_;
  std::vector<char> bytes_;
  std::array<StampRoom, most> rooms_{};
  std::array<KernelStamp, most> arrived_{};
  std::array<mmsghdr, most> incoming_{};
  std::array<iovec, most> pieces_{};
  std::array<mmsghdr, most> outgoing_{};
  std::array<iovec, most> sent_{};
};

/// One connected socket for each connection, so that the kernel tells the clients' datagrams apart and reports a server
/// that is not there (udp(7): ECONNREFUSED). epoll, edge-triggered, and one recvmmsg a turn: one that does not fill its
/// batch has emptied the socket. A socket that filled it has its next turn after all others.
///
/// Sockets are numbered: first those of the connections, then, where there are any, the members of the connections in
/// the same order.
class UdpTransport final : public Transport {
 public:
  UdpTransport(const LoadPlan& plan, const ThreadShare& share, const Url& server, OpenMember open_member)
      : share_(share),
        servers_(resolve(server.host, server.port)),
        route_(servers_.size(), share.size(), plan.connect_timeout),
        open_member_(std::move(open_member)),
        sources_(resolve_sources(plan.source_ips)),
        sampler_(share.thread, plan.ends_times_with_stamps()),
        greetings_(share.size(), fresh_secret()),
        fds_(open_member_ ? 2 * share.size() : share.size()),
        batch_(longest_datagram(plan)) {}

  ~UdpTransport() override {
    for (std::uint32_t connection = 0; connection < share_.size(); ++connection) close(connection);
  }

  void connect(std::uint32_t connection, TransportEvents& events) override {
    route_.begin(connection, now_ns());
    try_address(connection, events);
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    greetings_.spoke(connection);
    if (send_datagram(fds_[connection].get(), bytes) >= 0) return bytes.size();
    note_unsent(connection);
    return 0;
  }

  std::size_t send_messages(std::uint32_t connection, std::string_view bytes,
                            std::span<const std::size_t> ends) override {
    if (ends.size() == 1) return send(connection, bytes);
    greetings_.spoke(connection);
    std::size_t taken = 0;
    while (!ends.empty()) {
      const auto batch_ends = ends.first(std::min(ends.size(), Batch::most));
      const long sent = batch_.send(fds_[connection].get(), bytes, taken, batch_ends);
      if (sent <= 0) {
        note_unsent(connection);
        break;
      }
      taken = ends[static_cast<std::size_t>(sent) - 1];
      ends = ends.subspan(static_cast<std::size_t>(sent));
    }
    return taken;
  }

  void close(std::uint32_t connection) override {
    if (!fds_[connection]) return;
    if (const auto bye = greetings_.end(connection)) say(connection, *bye);
    let_go(connection);
  }

  bool wait(Nanos until, TransportEvents& events) override {
    const bool more = !unfinished_.empty() || !broken_.empty();
    const auto ready = poller_.wait(more ? 0 : std::min({until, greetings_.due(), route_.due()}));
    for (const epoll_event& event : ready)
      if (!poller_.was_wake(event)) handle(static_cast<std::uint32_t>(event.data.u64), event.events, events);
    next_turn_.swap(unfinished_);
    for (const std::uint32_t socket : next_turn_)
      if (fds_[socket]) receive(socket, true, events);
    next_turn_.clear();
    for (const auto& [connection, error] : std::exchange(broken_, {}))
      if (fds_[connection]) end(connection, CloseReason::reset, error, events);
    leave_silent_addresses(events);
    greet();
    return more || !ready.empty();
  }

  void sample_arrivals(Nanos span) override { sampler_.settle(span); }

  void wake() override { poller_.wake(); }

  std::uint64_t socket_drops() const override {
    std::uint64_t sum = dropped_;
    for (const UniqueFd& fd : fds_)
      if (fd) sum += drops(fd.get());
    return sum;
  }

 private:
  static constexpr std::uint32_t readable = EPOLLIN | EPOLLET;

  /// One more byte than the longest reply has, so that a longer datagram is not cut to a good one.
  static std::size_t longest_datagram(const LoadPlan& plan) {
    constexpr std::size_t beside_the_stamp = 128;  // framing, the fields of rpc, that byte, and a round figure
    return std::max(control_size + 1, plan.size + beside_the_stamp);
  }

  /// Greets at the next address of its route.
  void try_address(std::uint32_t connection, TransportEvents& events) {
    const int error = open(connection);
    if (error != 0 || !join(connection)) return leave_address(connection, error != 0 ? error : errno, events);
    say(connection, greetings_.begin(connection, now_ns()));
  }

  /// No answer comes from this address: tries the next one, or reports that the connect failed.
  void leave_address(std::uint32_t connection, int error, TransportEvents& events) {
    let_go(connection);
    if (route_.take_next(connection, error, now_ns())) return try_address(connection, events);
    greetings_.end(connection);
    const int why = route_.error(connection, error);
    events.on_connect_failed(connection, connect_failure(why), why);
  }

  void leave_silent_addresses(TransportEvents& events) {
    if (route_.due() == never) return;
    while (const auto connection = route_.take_expired(now_ns()))
      if (fds_[*connection] && !greetings_.known(*connection)) leave_address(*connection, ETIMEDOUT, events);
  }

  /// 0 or why not.
  int open(std::uint32_t connection) {
    UniqueFd& fd = fds_[connection];
    const SocketAddress& server = servers_[route_.address(connection)];
    fd.reset(socket(server.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return errno;
    widen_receive_buffer(fd.get());
    keep_arrival_times(fd.get());
    if (!sources_.empty()) {
      const SocketAddress* const source = find_source(sources_[share_.global(connection) % sources_.size()], server);
      if (source == nullptr) return EADDRNOTAVAIL;
      if (bind(fd.get(), source->get(), source->size) != 0) return errno;
    }
    if (::connect(fd.get(), server.get(), server.size) != 0) return errno;
    poller_.add(fd.get(), readable, connection);
    return 0;
  }

  /// Before it sends HELO, so that it receives all messages once it is known. False with errno.
  bool join(std::uint32_t connection) {
    if (!open_member_) return true;
    UniqueFd& fd = fds_[share_.size() + connection];
    fd = open_member_();
    if (!fd) return false;
    widen_receive_buffer(fd.get());
    keep_arrival_times(fd.get());
    poller_.add(fd.get(), readable, share_.size() + connection);
    return true;
  }

  std::uint32_t connection_of(std::uint32_t socket) const { return socket % share_.size(); }

  /// A control message that does not go out is as good as one that the network loses: it is repeated or expires.
  void say(std::uint32_t connection, const ControlBytes& bytes) {
    if (send_datagram(fds_[connection].get(), {bytes.data(), bytes.size()}) < 0 && !is_full(errno))
      broken_.emplace_back(connection, errno);
  }

  void greet() {
    constexpr int most_in_a_turn = 64;
    if (greetings_.due() == never) return;
    const Nanos now = now_ns();
    for (int i = 0; i < most_in_a_turn; ++i) {
      const auto hello = greetings_.take_due(now);
      if (!hello) return;
      say(hello->connection, hello->bytes);
    }
  }

  static bool is_full(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS; }

  /// errno says why. The kernel reports an error once (socket(7), SO_ERROR), so it is stored here.
  void note_unsent(std::uint32_t connection) {
    if (is_full(errno)) return poller_.modify(fds_[connection].get(), readable | EPOLLOUT, connection);
    broken_.emplace_back(connection, errno);
  }

  void handle(std::uint32_t socket, std::uint32_t what, TransportEvents& events) {
    if (!fds_[socket]) return;  // let go of while an earlier event of this batch was handled
    if ((what & (EPOLLIN | EPOLLERR)) != 0) receive(socket, (what & EPOLLERR) != 0, events);
    if ((what & EPOLLOUT) != 0 && fds_[socket] && greetings_.known(socket)) {  // asked for only where messages leave
      poller_.modify(fds_[socket].get(), readable, socket);
      events.on_writable(socket);
    }
  }

  /// `last_edge`: what follows, perhaps an error, will not be another edge.
  void receive(std::uint32_t socket, bool last_edge, TransportEvents& events) {
    const bool stamped = sampler_.take();
    const long count = batch_.receive(fds_[socket].get(), stamped);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0 && errno != EINTR) return end(connection_of(socket), CloseReason::reset, errno, events);
    if (count == static_cast<long>(Batch::most) || last_edge || count < 0) unfinished_.push_back(socket);
    if (count > 0) deliver(connection_of(socket), static_cast<std::size_t>(count), stamped, events);
  }

  void deliver(std::uint32_t connection, std::size_t count, bool stamped, TransportEvents& events) {
    using Answer = Greetings::Answer;
    Answer last = Answer::nothing;
    messages_.clear();
    arrived_.clear();
    for (std::size_t i = 0; i < count && last != Answer::full && last != Answer::bye; ++i) {
      const std::string_view message = batch_.received(i);
      last = is_control(message) ? greetings_.receive(connection, message, now_ns()) : Answer::nonsense;
      if (last == Answer::welcome) {
        route_.arrived(connection);
        events.on_connected(connection);
      }
      // Messages of others from before the server's WELC are not due to this connection yet.
      if (last != Answer::nonsense || !greetings_.known(connection)) continue;
      messages_.push_back(message);
      if (stamped) arrived_.push_back(batch_.arrived(i));
    }
    if (!messages_.empty()) events.on_messages(connection, messages_, arrived_);
    const bool ended = last == Answer::full || last == Answer::bye;
    if (ended && fds_[connection]) end(connection, CloseReason::closed_by_server, ECONNREFUSED, events);
  }

  /// The server, or the network for it, has ended a connection or declined to make one.
  void end(std::uint32_t connection, CloseReason reason, int error, TransportEvents& events) {
    const bool stood = greetings_.known(connection);
    if (!stood && reason == CloseReason::reset) return leave_address(connection, error, events);
    greetings_.end(connection);  // without a BYE!: the server knows
    let_go(connection);
    if (stood) return events.on_closed(connection, reason);
    events.on_connect_failed(connection, connect_failure(error), error);
  }

  void let_go(std::uint32_t connection) {
    std::erase_if(broken_, [connection](const auto& broken) { return broken.first == connection; });
    for (std::size_t socket = connection; socket < fds_.size(); socket += share_.size()) {
      if (!fds_[socket]) continue;
      dropped_ += drops(fds_[socket].get());
      fds_[socket].reset();
    }
  }

  ThreadShare share_;
  std::vector<SocketAddress> servers_;
  Route route_;
  OpenMember open_member_;
  std::vector<std::vector<SocketAddress>> sources_;
  ReadSampler sampler_;
  Greetings greetings_;
  SocketPoller poller_;
  std::vector<UniqueFd> fds_;
  Batch batch_;                                        // of the socket that has its turn
  std::vector<std::string_view> messages_;             // of the load, in it
  std::vector<KernelStamp> arrived_;                   // of each, where the batch was stamped
  std::vector<std::uint32_t> unfinished_;              // those that may hold more than was read
  std::vector<std::uint32_t> next_turn_;               // they, while they have it
  std::vector<std::pair<std::uint32_t, int>> broken_;  // heard of an error while sending; the errno
  std::uint64_t dropped_ = 0;                          // by sockets that are closed
};

}  // namespace

std::unique_ptr<Transport> make_udp_transport(const LoadPlan& plan, const ThreadShare& share) {
  return make_udp_transport(plan, share, plan.url, {});
}

std::unique_ptr<Transport> make_udp_transport(const LoadPlan& plan, const ThreadShare& share, const Url& server,
                                              OpenMember open_member) {
  return std::make_unique<UdpTransport>(plan, share, server, std::move(open_member));
}

}  // namespace netdyno::load
