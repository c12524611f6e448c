#pragma once

#include <cstddef>
#include <memory>

#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Descriptors of a connection: the wake-up of its socket, its TCP connection, and the wake-ups of the pair of sockets
/// that tell what becomes of that connection (zmq_socket_monitor(3)).
inline constexpr std::size_t zmq_descriptors_per_connection = 4;
/// Descriptors of a thread beside epoll and its wake-up: those of libzmq's two threads, and of the context's end.
inline constexpr std::size_t zmq_descriptors_per_thread = 6;

std::unique_ptr<Transport> make_zmq_transport(const LoadPlan& plan, const ThreadShare& share);

}  // namespace netdyno::load
