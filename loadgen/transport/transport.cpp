#include "loadgen/transport/transport.hpp"

#include "lib/cli/die.hpp"
#include "loadgen/transport/grpc.hpp"
#include "loadgen/transport/multicast.hpp"
#include "loadgen/transport/tcp.hpp"
#include "loadgen/transport/tls.hpp"
#include "loadgen/transport/udp.hpp"
#include "loadgen/transport/websocket.hpp"
#include "loadgen/transport/zmq.hpp"

namespace netdyno::load {
namespace {

/// Each transport that this program was built with, one row.
struct TransportKind {
  std::string_view scheme;
  std::unique_ptr<Transport> (*make)(const LoadPlan& plan, const ThreadShare& share);
};
constexpr TransportKind kinds[] = {
    {"tcp", make_tcp_transport},
    {"udp", make_udp_transport},
    {"multicast", make_multicast_transport},
#if defined(NETDYNO_WITH_ZMQ)
    {"zmq+tcp", make_zmq_transport},
#endif
};

std::unique_ptr<Transport> with_layers(const LoadPlan& plan, const ThreadShare& share,
                                       std::unique_ptr<Transport> transport) {
#if defined(NETDYNO_WITH_TLS)
  if (plan.tls.on) transport = make_tls_transport(plan, share, std::move(transport));
#endif
#if defined(NETDYNO_WITH_HTTP2)
  if (plan.workload == Workload::grpc) transport = make_grpc_transport(plan, share, std::move(transport));
#endif
  if (plan.websocket) transport = make_websocket_transport(plan, share, std::move(transport));
  return transport;
}

}  // namespace

std::size_t Transport::send_messages(std::uint32_t connection, std::string_view bytes,
                                     std::span<const std::size_t> ends) {
  std::size_t taken = 0;
  for (const std::size_t end : ends) {
    if (send(connection, bytes.substr(taken, end - taken)) == 0) break;
    taken = end;
  }
  return taken;
}

UniqueFd Transport::release(std::uint32_t) { die("connections of this transport have no socket of their own"); }

std::unique_ptr<Transport> make_transport(const LoadPlan& plan, const ThreadShare& share) {
  for (const TransportKind& kind : kinds)
    if (kind.scheme == plan.url.transport) return with_layers(plan, share, kind.make(plan, share));
  die("this generator was built without the transport '" + plan.url.transport + "'");
}

}  // namespace netdyno::load
