#pragma once

#include <string>

#include "lib/cli/url.hpp"

namespace netdyno {

enum class Binding { no, yes };

/// What libzmq calls a URL: `tcp://address:port`, with the numeric address of the host, as zmq_tcp(7) takes no names to
/// bind to; IPv4 where it has one, as `localhost` is ::1 first. Ends the program when there is none.
std::string zmq_address(const Url& url, Binding binding);

}  // namespace netdyno
