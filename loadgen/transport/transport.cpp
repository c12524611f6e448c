#include "loadgen/transport.hpp"

#include "common/socket.hpp"
#include "loadgen/transport/tcp.hpp"

namespace netdyno::load {

std::unique_ptr<Transport> make_transport(const LoadPlan& plan, const Slice& slice) {
  if (plan.url.transport == "tcp") return make_tcp_transport(plan, slice);
  die("transport '" + plan.url.transport + "' is not spoken here");
}

}  // namespace netdyno::load
