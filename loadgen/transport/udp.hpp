#pragma once

#include <functional>
#include <memory>

#include "lib/cli/url.hpp"
#include "lib/net/descriptor.hpp"

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

std::unique_ptr<Transport> make_udp_transport(const LoadPlan& plan, const ThreadShare& share);

/// Opens one more socket for a connection, non-blocking, on which it hears what the server sends to all of them at
/// once. Empty when it cannot, with errno.
using OpenMember = std::function<UniqueFd()>;

/// The same with a server that is not where the URL of the plan says, and with members, unless `open_member` is empty.
std::unique_ptr<Transport> make_udp_transport(const LoadPlan& plan, const ThreadShare& share, const Url& server,
                                              OpenMember open_member);

}  // namespace netdyno::load
