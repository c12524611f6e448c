#pragma once

#include <string>
#include <vector>

#include "lib/cli/url.hpp"

namespace netdyno {

enum class Binding { no, yes };

/// Writes a URL for libzmq: `tcp://address:port`, for each address of the host, in the order in which they are to be
/// tried (Resolved); numeric, as zmq_tcp(7) takes no names to bind to. Ends the program when there is none.
std::vector<std::string> zmq_addresses(const Url& url, Binding binding);

}  // namespace netdyno
