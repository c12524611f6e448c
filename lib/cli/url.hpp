#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace netdyno {

/// `tcp://host:port`, `udp://…`, `multicast://group:port?interface=…`, `zmq+tcp://…`. An IPv6 host stands in brackets.
/// The scheme may be written in capitals.
struct Url {
  std::string transport;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::string query;  // what follows '?', uninterpreted
};

/// Nothing when the text is not such a URL.
std::optional<Url> parse_url(std::string_view text);

/// ASCII only, whatever the locale.
std::string lower_case(std::string_view text);

/// The host as another machine may hear it: the zone of an IPv6 address means something on this machine only (RFC 4007,
/// 11.2).
std::string host_without_zone(const std::string& host);

/// The text of a URL; an IPv6 host gets its brackets back.
std::string format_url(const Url& url);

}  // namespace netdyno
