#pragma once

#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// TLS over a transport of streams, by OpenSSL. Ends the program when the authorities cannot be read.
std::unique_ptr<Transport> make_tls_transport(const LoadPlan& plan, const ThreadShare& share,
                                              std::unique_ptr<Transport> below);

}  // namespace netdyno::load
