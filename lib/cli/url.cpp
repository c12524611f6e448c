#include "lib/cli/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace netdyno {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

/// Cuts `text` at the first `mark`; what follows the mark is returned, empty when there is none.
std::string_view cut(std::string_view& text, char mark) {
  const auto position = text.find(mark);
  if (position == std::string_view::npos) return {};
  const auto rest = text.substr(position + 1);
  text = text.substr(0, position);
  return rest;
}

/// Letters, digits and `others`: all that a host can be made of, so that a typing error is not left to the resolver.
bool made_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [others](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

/// The host without its brackets, which an IPv6 address (RFC 3986, 3.2.2; with a zone, RFC 4007) has and nothing else.
std::optional<std::string_view> parse_host(std::string_view text) {
  const bool bracketed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (!bracketed) return made_of(text, "._-") ? std::optional{text} : std::nullopt;
  text = text.substr(1, text.size() - 2);
  const bool good = text.find(':') != std::string_view::npos && made_of(text, ":.%_-");
  return good ? std::optional{text} : std::nullopt;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string host_without_zone(const std::string& host) { return host.substr(0, host.find('%')); }

std::optional<Url> parse_url(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return std::nullopt;
  Url url;
  url.transport = lower_case(text.substr(0, scheme_end));  // RFC 3986, 3.1
  text.remove_prefix(scheme_end + 3);
  url.query = cut(text, '?');

  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  const auto host = parse_host(text.substr(0, colon));
  if (!port || !host) return std::nullopt;
  url.host = *host;
  url.port = *port;
  return url;
}

std::string format_url(const Url& url) {
  const bool ipv6 = url.host.find(':') != std::string::npos;
  const auto query = url.query.empty() ? "" : "?" + url.query;
  return ipv6 ? fmt::format("{}://[{}]:{}{}", url.transport, url.host, url.port, query)
              : fmt::format("{}://{}:{}{}", url.transport, url.host, url.port, query);
}

}  // namespace netdyno
