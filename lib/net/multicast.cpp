#include "lib/net/multicast.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "lib/cli/command_line.hpp"
#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

constexpr const char* want = "want e.g. multicast://239.1.2.3:7000?interface=lo";

template <typename... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw std::invalid_argument(fmt::format(text, std::forward<Arguments>(arguments)...));
}

std::optional<in_addr> parse_address(std::string_view text) {
  in_addr address{};
  return inet_pton(AF_INET, std::string{text}.c_str(), &address) == 1 ? std::optional{address} : std::nullopt;
}

bool is_multicast(in_addr address) { return IN_MULTICAST(ntohl(address.s_addr)); }

/// 224.0.0.0/24 is for the protocols that keep a network going, such as 224.0.0.1, all hosts (RFC 5771, 4).
bool is_reserved(in_addr group) { return (ntohl(group.s_addr) & 0xffffff00U) == 0xe0000000U; }

in_addr parse_group(const std::string& text) {
  const auto group = parse_address(text);
  if (!group || !is_multicast(*group)) refuse("'{}' is no IPv4 multicast address; {}", text, want);
  if (is_reserved(*group)) refuse("{} is reserved for the network's own protocols; {}", text, want);
  return *group;
}

in_addr parse_server(std::string_view text) {
  const auto address = parse_address(text);
  if (!address || is_multicast(*address)) refuse("server '{}' is no IPv4 address of a machine", text);
  return *address;
}

int parse_ttl(std::string_view text) {
  if (text != "0" && text != "1") refuse("ttl '{}' is neither 0 (this machine) nor 1 (this link)", text);
  return text == "1" ? 1 : 0;
}

void take(MulticastUrl& url, std::string_view key, std::string_view value) {
  if (key == "interface") {
    url.interface = value;
  } else if (key == "server") {
    url.server = parse_server(value);
  } else if (key == "ttl") {
    url.ttl = parse_ttl(value);
  } else {
    refuse("unknown key '{}' after '?': there are interface, server and ttl", key);
  }
}

ip_mreqn membership(in_addr group, const Interface& interface) {
  return {.imr_multiaddr = group, .imr_address = {}, .imr_ifindex = interface.index};
}

template <typename Value>
bool set_ip(int fd, int option, const Value& value) {
  return setsockopt(fd, IPPROTO_IP, option, &value, sizeof value) == 0;
}

using AddressList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

AddressList all_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) die(fmt::format("getifaddrs: {}", std::strerror(errno)));
  return {list, freeifaddrs};
}

}  // namespace

MulticastUrl parse_multicast_url(const Url& url) {
  MulticastUrl parsed{.group = parse_group(url.host), .port = url.port, .interface = {}, .server = {}};
  std::string seen = "&";
  for (std::string_view rest{url.query}; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) refuse("'{}' after '?' is no key=value; {}", pair, want);
    const std::string_view key = pair.substr(0, equals);
    if (seen.find(fmt::format("&{}&", key)) != std::string::npos) refuse("'{}' stands twice after '?'", key);
    seen.append(key).append("&");
    take(parsed, key, pair.substr(equals + 1));
  }
  if (parsed.interface.empty()) refuse("no interface is named; {}", want);
  return parsed;
}

Url to_url(const MulticastUrl& url) {
  std::string query = "interface=" + url.interface;
  if (url.server) query += "&server=" + to_string(*url.server);
  if (url.ttl != 0) query += fmt::format("&ttl={}", url.ttl);
  return {"multicast", to_string(url.group), url.port, query};
}

std::string to_string(in_addr address) {
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &address, text, sizeof text);
}

Address to_address(in_addr host, std::uint16_t port) {
  const sockaddr_in from{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = host, .sin_zero = {}};
  Address address;
  std::memcpy(address.data(), &from, sizeof from);
  return address;
}

Interface find_interface(const std::string& name) {
  const unsigned index = if_nametoindex(name.c_str());
  if (index == 0) refuse("there is no interface '{}'", name);
  const auto list = all_addresses();
  bool up = false;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (name != entry->ifa_name) continue;
    up = (entry->ifa_flags & IFF_UP) != 0;
    if (!up || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    return {static_cast<int>(index), address.sin_addr};
  }
  refuse("interface '{}' {}", name, up ? "has no IPv4 address" : "is not up");
}

bool join_group(int fd, in_addr group, const Interface& interface) {
  // ip(7): by default a socket gets what any socket of the machine has joined for.
  return set_ip(fd, IP_MULTICAST_ALL, 0) && set_ip(fd, IP_ADD_MEMBERSHIP, membership(group, interface));
}

void leave_group(int fd, in_addr group, const Interface& interface) {
  set_ip(fd, IP_DROP_MEMBERSHIP, membership(group, interface));
}

void set_multicast_output(int fd, const Interface& interface, int ttl) {
  if (!set_ip(fd, IP_MULTICAST_IF, membership({}, interface)) || !set_ip(fd, IP_MULTICAST_TTL, ttl) ||
      !set_ip(fd, IP_MULTICAST_LOOP, 1))
    die(fmt::format("cannot send multicast: {}", std::strerror(errno)));
}

std::string why_no_multicast() {
  struct stat here {};
  const char* mark = std::getenv("NETDYNO_PRIVATE_NETWORK");
  if (mark != nullptr && stat("/proc/self/ns/net", &here) == 0 && mark == std::to_string(here.st_ino)) return {};
  return "multicast is refused outside a private network namespace, as others on this machine or link may be in the "
         "group (./netdyno serve makes such a namespace, ./netdyno load --namespace PID enters it; "
         "--multicast-anywhere does without)";
}

void add_multicast_anywhere(CommandLine& line, bool& anywhere) {
  line.add_flag("--multicast-anywhere", anywhere, "use multicast outside a private network namespace, too");
}

MulticastPlace multicast_place(const std::string& program, const std::string& argument, const Url& url,
                               bool anywhere) try {
  MulticastPlace place{parse_multicast_url(url), {}};
  if (const auto why = why_no_multicast(); !why.empty() && !anywhere) usage_error(program, why);
  place.interface = find_interface(place.url.interface);
  if (!place.url.server) place.url.server = place.interface.address;
  return place;
} catch (const std::invalid_argument& error) {
  usage_error(program, argument + ": " + error.what());
}

}  // namespace netdyno
