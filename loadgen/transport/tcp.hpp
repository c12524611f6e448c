#pragma once

#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

std::unique_ptr<Transport> make_tcp_transport(const LoadPlan& plan, const ThreadShare& share);

}  // namespace netdyno::load
