#include "loadgen/transport/multicast.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "lib/net/multicast.hpp"
#include "loadgen/transport/udp.hpp"

namespace netdyno::load {
namespace {

/// A socket on the group's address hears what is sent there and nothing else; connected, only what the server sends
/// (udp(7)). Many may be bound to it, and each gets its copy (SO_REUSEADDR, socket(7)).
UniqueFd open_member(const MulticastPlace& place) {
  UniqueFd fd{socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!fd) return fd;
  const int on = 1;
  const auto here = to_address(place.url.group, place.url.port);
  const auto server = to_address(*place.url.server, place.url.port);
  const bool ready = setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                     bind(fd.get(), here.data(), here.size()) == 0 &&
                     connect(fd.get(), server.data(), server.size()) == 0 &&
                     join_group(fd.get(), place.url.group, place.interface);
  if (!ready) fd.reset();
  return fd;
}

}  // namespace

bool in_a_group(const LoadPlan& plan) { return plan.url.transport == "multicast" && plan.workload == Workload::chat; }

std::unique_ptr<Transport> make_multicast_transport(const LoadPlan& plan, const ThreadShare& share) {
  const auto place = multicast_place(program_invocation_short_name, "url", plan.url, plan.multicast_anywhere);
  const Url server{"udp", netdyno::to_string(*place.url.server), place.url.port, ""};
  if (!in_a_group(plan)) return make_udp_transport(plan, share, server, {});
  return make_udp_transport(plan, share, server, [place] { return open_member(place); });
}

}  // namespace netdyno::load
