#include "loadgen/transport/zmq.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "lib/cli/die.hpp"
#include "lib/net/zmq/address.hpp"
#include "loadgen/transport/greeting.hpp"
#include "loadgen/transport/route.hpp"
#include "loadgen/transport/socket_poller.hpp"

namespace netdyno::load {
namespace {

/// Beside the socket of a connection: both ends of its monitor.
constexpr std::uint32_t sockets_per_connection = 3;
/// Messages of one connection before the others have their turn.
constexpr int most_per_turn = 64;
/// More than a broadcast of a thousand clients brings at once, so that nothing is dropped for the generator's sake.
constexpr int receive_hwm = 100'000;
/// How long a BYE! may take to get away.
constexpr std::chrono::milliseconds bye_timeout{1000};

bool is_ipv6(const std::string& address) { return address.find('[') != std::string::npos; }

/// The server's, each once for each of --source-ips: `tcp://source:0;server:port` (zmq_tcp(7)).
std::vector<std::vector<std::string>> addresses(const LoadPlan& plan) {
  std::vector<std::vector<std::string>> of_server;
  for (const std::string& server : zmq_addresses(plan.url, Binding::no)) {
    std::vector<std::string> with_sources;
    for (const std::string& source : plan.source_ips)
      for (const std::string& from : zmq_addresses({"tcp", source, 0, ""}, Binding::no))
        if (is_ipv6(from) == is_ipv6(server)) with_sources.push_back(from + ";" + server.substr(server.find("//") + 2));
    if (plan.source_ips.empty()) with_sources.push_back(server);
    if (!with_sources.empty()) of_server.push_back(with_sources);
  }
  if (of_server.empty()) die("--source-ips: none of them can reach an address of " + plan.url.host);
  return of_server;
}

/// A DEALER socket per connection, all of a thread in one context, whose one I/O thread does the TCP. Each thread of
/// the generator has its own: nothing is shared between them, and the sockets that one context can have
/// (ZMQ_MAX_SOCKETS) are a thread's and not the program's. One context for all, with as many I/O threads, was no
/// faster.
///
/// ZMQ_FD is edge-triggered, and tells only that something may have happened (zmq_getsockopt(3)): a socket that it
/// names is read until it is empty. Sending takes in what the descriptor had to tell, so a sending socket is read, too,
/// before the thread waits.
class ZmqTransport final : public Transport {
 public:
  ZmqTransport(const LoadPlan& plan, const ThreadShare& share)
      : share_(share),
        addresses_(addresses(plan)),
        route_(addresses_.size(), share.size(), plan.connect_timeout),
        greetings_(share.size(), fresh_secret()),
        links_(share.size()),
        io_thread_(fmt::format("{}/ZMQbg/IO/0", share.thread)) {
    const std::uint64_t sockets = std::uint64_t{share.size()} * sockets_per_connection;
    const auto most = static_cast<std::uint64_t>(context_.get(zmq::ctxopt::socket_limit));
    if (sockets > most)
      die(fmt::format("a thread can have {} connections with ZeroMQ: ask for more --threads",
                      most / sockets_per_connection));
    // A connection that goes on to the next address has new ones, while libzmq still closes the others.
    context_.set(zmq::ctxopt::max_sockets, static_cast<int>(std::min(sockets * addresses_.size(), most)));
    zmq_ctx_set(context_.handle(), ZMQ_THREAD_NAME_PREFIX, static_cast<int>(share.thread));
  }

  ~ZmqTransport() override {
    for (std::uint32_t connection = 0; connection < links_.size(); ++connection) close(connection);
  }

  void connect(std::uint32_t connection, TransportEvents&) override {
    route_.begin(connection, now_ns());
    try_address(connection);
  }

  void try_address(std::uint32_t connection) {
    const auto& sources = addresses_[route_.address(connection)];
    const std::string& address = sources[share_.global(connection) % sources.size()];
    Link& link = links_[connection];
    link.socket = open_socket(is_ipv6(address));
    link.monitor = open_monitor(link.socket, connection);
    poller_.add(link.socket.get(zmq::sockopt::fd), EPOLLIN | EPOLLET, connection);
    poller_.add(link.monitor.get(zmq::sockopt::fd), EPOLLIN | EPOLLET, connection | monitor_mark);
    link.socket.connect(address);
    send_hello({connection, greetings_.begin(connection, now_ns())});
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    Link& link = links_[connection];
    queue_read(connection);
    if (!link.socket.send(zmq::const_buffer{bytes.data(), bytes.size()}, zmq::send_flags::dontwait)) {
      link.blocked = true;
      return 0;
    }
    greetings_.spoke(connection);
    return bytes.size();
  }

  void close(std::uint32_t connection) override {
    Link& link = links_[connection];
    if (!link.socket) return;
    const bool known = greetings_.known(connection);
    const auto bye = greetings_.end(connection);
    if (known) std::ignore = link.socket.send(zmq::buffer(*bye), zmq::send_flags::dontwait);
    let_go(connection, known ? bye_timeout : std::chrono::milliseconds{0});
  }

  bool wait(Nanos until, TransportEvents& events) override {
    const bool had_something = read_queued_connections(events);
    const bool read_again = had_something || !to_read_.empty();
    const auto ready = poller_.wait(read_again ? 0 : std::min({until, greetings_.due(), route_.due()}));
    for (const epoll_event& event : ready) {
      if (poller_.was_wake(event)) continue;
      const auto mark = static_cast<std::uint32_t>(event.data.u64);
      const std::uint32_t connection = mark & ~monitor_mark;
      (mark & monitor_mark) != 0 ? read_monitor(connection, events) : queue_read(connection);
    }
    leave_silent_addresses();
    while (const auto due = greetings_.take_due(now_ns())) send_hello(*due);
    return read_queued_connections(events) || had_something || !ready.empty();
  }

  void wake() override { poller_.wake(); }

  std::vector<CpuTime> own_threads() const override { return cpu_of_threads_named(io_thread_); }

 private:
  /// Beside the number of its connection: the descriptor is that of a monitor.
  static constexpr std::uint32_t monitor_mark = 1U << 31;

  struct Link {
    zmq::socket_t socket;
    zmq::socket_t monitor;
    bool blocked = false;      // until there is room
    bool read_queued = false;  // stands in to_read_
  };

  zmq::socket_t open_socket(bool ipv6) {
    zmq::socket_t socket{context_, zmq::socket_type::dealer};
    socket.set(zmq::sockopt::ipv6, ipv6);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvhwm, receive_hwm);
    // libzmq must not reconnect a broken connection by itself. (-1 would say never, but then libzmq throws away what
    // has arrived and is not read yet, in its session_base.)
    socket.set(zmq::sockopt::reconnect_ivl, std::numeric_limits<int>::max() / 2);
    return socket;
  }

  zmq::socket_t open_monitor(zmq::socket_t& socket, std::uint32_t connection) {
    const std::string endpoint = fmt::format("inproc://monitor-{}-{}", connection, route_.address(connection));
    if (zmq_socket_monitor(socket.handle(), endpoint.c_str(), ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED) != 0)
      die(fmt::format("zmq_socket_monitor: {}", zmq_strerror(zmq_errno())));
    zmq::socket_t monitor{context_, zmq::socket_type::pair};
    monitor.set(zmq::sockopt::linger, 0);
    monitor.connect(endpoint);
    // Its descriptor tells of what comes only after it has been found empty. Nothing can be there yet.
    std::ignore = monitor.recv(message_, zmq::recv_flags::dontwait);
    return monitor;
  }

  void leave_silent_addresses() {
    if (route_.due() == never) return;
    while (const auto connection = route_.take_expired(now_ns())) {
      if (!links_[*connection].socket || !route_.take_next(*connection, ETIMEDOUT, now_ns())) continue;
      let_go(*connection, std::chrono::milliseconds{0});
      try_address(*connection);
    }
  }

  void send_hello(const Greetings::Hello& hello) {
    // Where there is no room for it, the server hears of this connection anyway.
    std::ignore = links_[hello.connection].socket.send(zmq::buffer(hello.bytes), zmq::send_flags::dontwait);
    queue_read(hello.connection);
  }

  void queue_read(std::uint32_t connection) {
    if (!std::exchange(links_[connection].read_queued, true)) to_read_.push_back(connection);
  }

  /// It has just been found empty, whatever was sent while it was read.
  void cancel_read(std::uint32_t connection) {
    if (to_read_.empty() || to_read_.back() != connection) return;
    to_read_.pop_back();
    links_[connection].read_queued = false;
  }

  bool read_queued_connections(TransportEvents& events) {
    bool any = false;
    reading_.swap(to_read_);
    for (const std::uint32_t connection : reading_) {
      links_[connection].read_queued = false;
      any |= receive(connection, most_per_turn, events);
    }
    reading_.clear();
    return any;
  }

  /// True when something came.
  bool receive(std::uint32_t connection, int most, TransportEvents& events) {
    Link& link = links_[connection];
    for (int taken = 0; taken < most; ++taken) {
      if (!link.socket) return true;  // let go of meanwhile
      if (!link.socket.recv(message_, zmq::recv_flags::dontwait)) {
        cancel_read(connection);
        check_room(connection, events);
        return taken > 0;
      }
      deliver(connection, {message_.data<char>(), message_.size()}, events);
    }
    if (link.socket) queue_read(connection);
    return true;
  }

  void check_room(std::uint32_t connection, TransportEvents& events) {
    Link& link = links_[connection];
    if (!link.blocked || (link.socket.get(zmq::sockopt::events) & ZMQ_POLLOUT) == 0) return;
    link.blocked = false;
    events.on_writable(connection);
  }

  void deliver(std::uint32_t connection, std::string_view message, TransportEvents& events) {
    if (!is_control(message)) return events.on_received(connection, message, {});
    switch (greetings_.receive(connection, message, now_ns())) {
      case Greetings::Answer::welcome:
        route_.arrived(connection);
        return events.on_connected(connection);
      case Greetings::Answer::full:
      case Greetings::Answer::bye:
        return end(connection, ConnectFailure::refused, ECONNREFUSED, events);
      case Greetings::Answer::nonsense:
        return events.on_received(connection, message, {});
      case Greetings::Answer::nothing:
        break;
    }
  }

  /// Learns from libzmq that a connection ended, but not why: refused is what a connect nearly always was that
  /// failed. What came before is delivered first.
  void read_monitor(std::uint32_t connection, TransportEvents& events) {
    Link& link = links_[connection];
    while (link.monitor && link.monitor.recv(message_, zmq::recv_flags::dontwait)) {
      std::uint16_t event = 0;
      std::memcpy(&event, message_.data(), sizeof event);
      std::ignore = link.monitor.recv(message_);  // the endpoint
      receive(connection, std::numeric_limits<int>::max(), events);
      if (!link.socket) return;
      const bool connected = event == ZMQ_EVENT_DISCONNECTED;
      if (!connected && !greetings_.known(connection) && route_.take_next(connection, ECONNREFUSED, now_ns())) {
        let_go(connection, std::chrono::milliseconds{0});
        return try_address(connection);
      }
      end(connection, connected ? ConnectFailure::reset : ConnectFailure::refused,
          connected ? ECONNRESET : ECONNREFUSED, events);
    }
  }

  /// The server is gone, or does not want this connection.
  void end(std::uint32_t connection, ConnectFailure failure, int error, TransportEvents& events) {
    const bool known = greetings_.known(connection);
    greetings_.end(connection);
    let_go(connection, std::chrono::milliseconds{0});
    known ? events.on_closed(connection, CloseReason::closed_by_server)
          : events.on_connect_failed(connection, failure, error);
  }

  void let_go(std::uint32_t connection, std::chrono::milliseconds linger) {
    Link& link = links_[connection];
    // libzmq closes the descriptors later, on a thread of its own (zmq_close(3)): till then they may be reported.
    link.socket.set(zmq::sockopt::linger, static_cast<int>(linger.count()));
    // Stopped from its own side first: libzmq's I/O thread would wait for ever to tell a monitor that is not there.
    zmq_socket_monitor(link.socket.handle(), nullptr, 0);
    link.monitor.close();
    link.socket.close();
    link.blocked = false;
  }

  zmq::context_t context_;
  const ThreadShare share_;
  const std::vector<std::vector<std::string>> addresses_;  // of the server, each with its sources, taken in turn
  Route route_;
  Greetings greetings_;
  SocketPoller poller_;
  std::vector<Link> links_;
  const std::string io_thread_;         // the name of libzmq's
  std::vector<std::uint32_t> to_read_;  // those that may have something, whatever their descriptors say
  std::vector<std::uint32_t> reading_;  // they, while they are read
  zmq::message_t message_;
};

}  // namespace

std::unique_ptr<Transport> make_zmq_transport(const LoadPlan& plan, const ThreadShare& share) {
  return std::make_unique<ZmqTransport>(plan, share);
}

}  // namespace netdyno::load
