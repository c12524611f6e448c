#include "common/url.hpp"

#include <fmt/format.h>

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
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const auto rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

}  // namespace

std::optional<Url> parse_url(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return std::nullopt;
  Url url;
  url.transport = text.substr(0, scheme_end);
  text.remove_prefix(scheme_end + 3);
  url.query = cut(text, '?');

  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  auto host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  if (!port || host.empty()) return std::nullopt;
  url.host = host;
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
