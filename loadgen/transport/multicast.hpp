#pragma once

#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Whether each connection of the plan has a second socket, which is in the group.
bool in_a_group(const LoadPlan& plan);

/// UDP to the server's own address, and in chat from the group as well. Ends the program where multicast is refused
/// (lib/net/multicast.hpp).
std::unique_ptr<Transport> make_multicast_transport(const LoadPlan& plan, const ThreadShare& share);

}  // namespace netdyno::load
