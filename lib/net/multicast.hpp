#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/cli/url.hpp"
#include "lib/net/datagram/address.hpp"

/// UDP multicast over IPv4 on one interface (RFC 1112; ip(7)), and the rule where it may be used.
namespace netdyno {

class CommandLine;

/// `multicast://GROUP:PORT?interface=NAME[&server=ADDRESS][&ttl=0|1]`, see protocol/WIRE.md.
struct MulticastUrl {
  in_addr group;
  std::uint16_t port;
  std::string interface;
  std::optional<in_addr> server;  // none: the interface's address
  int ttl = 0;                    // 0: stays on the machine; 1: on the link
};

/// Throws std::invalid_argument with a text for the user. Whether there is such an interface is another question.
MulticastUrl parse_multicast_url(const Url& url);
Url to_url(const MulticastUrl& url);

std::string to_string(in_addr address);
Address to_address(in_addr host, std::uint16_t port);

/// An interface that is there and up.
struct Interface {
  int index;
  in_addr address;  // its first IPv4 address
};

/// Throws std::invalid_argument with a text for the user.
Interface find_interface(const std::string& name);

/// A socket that datagrams to `group` reach, from `interface` only. False where the kernel has no room for it (errno).
[[nodiscard]] bool join_group(int fd, in_addr group, const Interface& interface);
/// The same datagrams no longer reach it. Closing the socket does that too.
void leave_group(int fd, in_addr group, const Interface& interface);

/// Makes `fd` send to a group by `interface`, for `ttl` hops, and to the members on this machine too.
/// With a `ttl` of 0 it stays on the machine only while some socket of the machine is a member of the group: where none
/// is, Linux sends it out all the same (6.18; __mkroute_output in net/ipv4/route.c takes the path without the check).
/// So a sender joins first.
void set_multicast_output(int fd, const Interface& interface, int ttl);

/// Why multicast is refused here; empty in a network namespace that was made for it (docs/adr/private-network.md).
std::string why_no_multicast();

/// A URL, and the interface that it names.
struct MulticastPlace {
  MulticastUrl url;  // `server` is set
  Interface interface;
};

/// The option --multicast-anywhere, by which the caller takes over the responsibility.
void add_multicast_anywhere(CommandLine& line, bool& anywhere);
/// Reads what the command line of `program` says as its `argument`. Ends the program with exit 2 and one line when that
/// cannot be meant, or when multicast is refused and not `anywhere`.
MulticastPlace multicast_place(const std::string& program, const std::string& argument, const Url& url, bool anywhere);

}  // namespace netdyno
