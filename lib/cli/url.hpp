#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace netdyno {

/// `tcp://host:port`, `udp://…`, `multicast://group:port?interface=…`, `zmq+tcp://…`. An IPv6 host stands in brackets.
struct Url {
  std::string transport;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::string query;  // what follows '?', uninterpreted
};

/// Nothing when the text is not such a URL.
std::optional<Url> parse_url(std::string_view text);

/// The text of a URL; an IPv6 host gets its brackets back.
std::string format_url(const Url& url);

}  // namespace netdyno
