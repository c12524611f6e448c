#include "servers/_shared/zmq/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "lib/cli/die.hpp"
#include "lib/net/zmq/address.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/server/thread_sanitizer.hpp"

namespace netdyno {
namespace {

/// A message that is a little too long shall be counted; one that is longer than this, libzmq does not even read: it
/// closes that connection (ZMQ_MAXMSGSIZE).
std::int64_t longest_read(const ServerOptions& options) {
  constexpr std::size_t least = 64 << 10;
  return static_cast<std::int64_t>(std::max(least, 2 * (options.max_frame + frame_header_size)));
}

void configure(zmq::socket_t& socket, const ZmqServerOptions& options) {
  // Without it, what is sent to a peer whose queue is full is dropped without a word.
  socket.set(zmq::sockopt::router_mandatory, true);
  socket.set(zmq::sockopt::sndhwm, options.zmq.hwm);
  socket.set(zmq::sockopt::rcvhwm, options.zmq.hwm);
  socket.set(zmq::sockopt::maxmsgsize, longest_read(options.server));
  socket.set(zmq::sockopt::backlog, options.server.backlog);
  if (options.server.socket_buffer == 0) return;
  socket.set(zmq::sockopt::sndbuf, static_cast<int>(options.server.socket_buffer));
  socket.set(zmq::sockopt::rcvbuf, static_cast<int>(options.server.socket_buffer));
}

void listen(zmq::socket_t& socket, const Url& url) {
  int error = 0;  // of the first address
  for (const std::string& address : zmq_addresses(url, Binding::yes)) {
    socket.set(zmq::sockopt::ipv6, address.find('[') != std::string::npos);
    if (zmq_bind(socket.handle(), address.c_str()) == 0) return;
    if (error == 0) error = zmq_errno();
  }
  const char* hint = error == EADDRINUSE ? "; another program listens there: choose another port, or port 0" : "";
  die(fmt::format("cannot listen on {}{}: {}", format_url(url), hint, zmq_strerror(error)));
}

void release(void*, void* hint) {
  handed_over(hint);
  delete static_cast<SharedFrame*>(hint);
}

}  // namespace

zmq::message_t message_sharing(const SharedFrame& frame) {
  auto reference = std::make_unique<SharedFrame>(frame);
  // zmq_msg_init_data(3) wants bytes that it may write to; it writes only to those of a message that it receives.
  auto* bytes = const_cast<char*>(frame->bytes.data());
  handing_over(reference.get());
  zmq::message_t message{bytes, frame->bytes.size(), release, reference.get()};
  reference.release();
  return message;
}

zmq::message_t copy_of(zmq::message_t& message) {
  zmq::message_t copy;
  copy.copy(message);
  return copy;
}

Router::Router(const ZmqServerOptions& options)
    : context_(options.zmq.io_threads), socket_(context_, zmq::socket_type::router) {
  configure(socket_, options);
  listen(socket_, options.server.listen);
}

Url Router::endpoint() const {
  const auto url = parse_url(socket_.get(zmq::sockopt::last_endpoint));
  if (!url) die("libzmq does not say on which address it listens");
  return {"zmq+tcp", url->host, url->port, ""};
}

int Router::fd() const { return socket_.get(zmq::sockopt::fd); }

bool Router::has_input() const { return (socket_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0; }

std::optional<Router::Arrived> Router::receive() {
  Arrived arrived;
  if (!socket_.recv(arrived.from, zmq::recv_flags::dontwait)) return std::nullopt;
  // All parts of a message arrive at once (zmq_msg_recv(3)), so none of these waits.
  bool more = socket_.recv(arrived.body).has_value() && arrived.body.more();
  arrived.one_part = !more;
  for (zmq::message_t part; more; more = part.more()) std::ignore = socket_.recv(part);
  return arrived;
}

Router::Result Router::send(std::string_view peer, zmq::message_t message) {
  zmq::message_t to{peer};
  // The peer's queue is checked with this part; once it is taken, the rest is, too.
  if (zmq_msg_send(to.handle(), socket_.handle(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    if (zmq_errno() == EAGAIN) return Result::full;
    if (zmq_errno() == EHOSTUNREACH) return Result::gone;
    die(fmt::format("zmq_msg_send: {}", zmq_strerror(zmq_errno())));
  }
  std::ignore = socket_.send(message, zmq::send_flags::dontwait);
  return Result::taken;
}

void Router::close(std::chrono::nanoseconds linger) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(linger).count();
  socket_.set(zmq::sockopt::linger, static_cast<int>(std::max<std::int64_t>(ms, 0)));
  socket_.close();
  context_.close();
}

}  // namespace netdyno
