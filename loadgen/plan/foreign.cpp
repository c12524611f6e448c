#include "loadgen/plan/foreign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>

#include "lib/cli/option_values.hpp"
#include "lib/cli/whole_file.hpp"

namespace netdyno::load {
namespace {

struct Scheme {
  std::string_view name;
  std::string_view port;  // where a URL names none
};
constexpr Scheme schemes[] = {{"http", ":80"}, {"https", ":443"}, {"ws", ":80"}, {"wss", ":443"}};
constexpr std::size_t longest_excerpt = 60;
constexpr std::string_view escape_letters = "rnt0\\";
constexpr std::string_view escaped_bytes{"\r\n\t\0\\", 5};
constexpr std::uint32_t most_weight = 1000;
constexpr std::uint64_t longest_order = 10'000;

bool has_port(std::string_view authority) {
  const auto colon = authority.rfind(':');
  return colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
}

/// A target holds no blanks nor control characters (RFC 9112, 3.2), or it would be more than one line or word.
bool is_target(std::string_view text) {
  return text.starts_with('/') &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
}

std::string read_file(const std::string& option, const std::string& name) {
  std::string text;
  const int error = read_whole(name, text);
  if (error == EFBIG)
    refuse_value(option, fmt::format("'{}' has more than {} MiB; want a smaller file", name, longest_file / (1 << 20)));
  if (error == EPIPE) refuse_value(option, fmt::format("'{}' is a pipe to which no program writes", name));
  if (error != 0) refuse_value(option, fmt::format("cannot read '{}': {}", name, std::strerror(error)));
  return text;
}

}  // namespace

FirstBodies::Body FirstBodies::first(const std::string& target, const Body& body) {
  const std::scoped_lock lock{mutex_};
  return bodies_.try_emplace(target, body).first->second;
}

FirstBodies::Bodies FirstBodies::all() const {
  const std::scoped_lock lock{mutex_};
  return bodies_;
}

std::optional<WeightedPath> parse_path(std::string_view text) {
  WeightedPath weighted;
  const auto equals = text.rfind('=');
  const bool is_apart = equals != std::string_view::npos && equals > 0 && text[equals - 1] == ' ';
  const bool is_weight = is_apart || (equals != std::string_view::npos && text.find('?') == std::string_view::npos);
  if (is_weight) {
    const char* const end = text.data() + text.size();
    const auto [read_to, error] = std::from_chars(text.data() + equals + 1, end, weighted.weight);
    if (error != std::errc{} || read_to != end || weighted.weight == 0 || weighted.weight > most_weight)
      return std::nullopt;
    text = text.substr(0, equals);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  weighted.path = text;
  return is_target(text) && text.find('#') == std::string_view::npos ? std::optional{weighted} : std::nullopt;
}

std::optional<std::vector<std::uint32_t>> order_by_weight(const std::vector<std::uint32_t>& weights) {
  std::vector<std::uint32_t> order;
  if (std::ranges::adjacent_find(weights, std::not_equal_to{}) == weights.end()) return order;
  const auto divisor = std::reduce(weights.begin(), weights.end(), 0U, [](auto a, auto b) { return std::gcd(a, b); });
  const auto total = std::reduce(weights.begin(), weights.end(), std::uint64_t{0}) / divisor;
  if (total > longest_order) return std::nullopt;
  // Each gains its weight at every turn, and the one that has most gives the total away.
  std::vector<std::int64_t> credits(weights.size());
  while (order.size() < total) {
    for (std::size_t i = 0; i < credits.size(); ++i) credits[i] += weights[i] / divisor;
    const auto most = std::ranges::max_element(credits);
    *most -= static_cast<std::int64_t>(total);
    order.push_back(static_cast<std::uint32_t>(most - credits.begin()));
  }
  return order;
}

bool is_idempotent(std::string_view method) {
  constexpr std::string_view methods[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
  return std::ranges::find(methods, method) != std::end(methods);
}

bool names_header(std::string_view header, std::string_view name) {
  return header.size() > name.size() && header[name.size()] == ':' && lower_case(header.substr(0, name.size())) == name;
}

std::optional<HttpUrl> parse_http_url(std::string_view text) {
  const auto end = text.find("://");
  const auto* const scheme = std::ranges::find(schemes, lower_case(text.substr(0, end)), &Scheme::name);
  if (end == std::string_view::npos || scheme == std::end(schemes)) return std::nullopt;
  text.remove_prefix(end + 3);
  const auto fragment = text.find('#');
  text = text.substr(0, fragment);
  const auto slash = text.find_first_of("/?");
  const std::string_view authority = text.substr(0, slash);
  std::string target{slash == std::string_view::npos ? "" : text.substr(slash)};
  if (!target.starts_with('/')) target.insert(0, "/");
  if (!is_target(target)) return std::nullopt;
  const auto server =
      parse_url("tcp://" + std::string{authority} + (has_port(authority) ? "" : std::string{scheme->port}));
  if (!server) return std::nullopt;
  return HttpUrl{scheme->name, *server, target};
}

std::string host_header(const Url& server, bool tls) {
  const bool ipv6 = server.host.find(':') != std::string::npos;
  const std::string host = host_without_zone(server.host);
  const std::uint16_t usual_port = tls ? 443 : 80;
  return "Host: " + (ipv6 ? "[" + host + "]" : host) +
         (server.port == usual_port ? "" : ":" + std::to_string(server.port)) + "\r\n";
}

bool announces_close(std::string_view header) {
  if (!names_header(header, "connection")) return false;
  std::string options = lower_case(header.substr(header.find(':') + 1));
  std::erase_if(options, [](char c) { return c == ' ' || c == '\t'; });
  return ("," + options + ",").find(",close,") != std::string::npos;
}

bool asks_to_close(const std::vector<std::string>& headers) {
  return std::ranges::any_of(headers, [](const std::string& header) { return announces_close(header); });
}

bool status_line_lacks_blank(std::string_view head) {
  return head.starts_with("HTTP/") && head.substr(0, shortest_status_line).ends_with("\r\n") &&
         head.size() >= shortest_status_line;
}

std::string with_blank_in_status_line(std::string_view head) {
  std::string complete{head};
  if (status_line_lacks_blank(head)) complete.insert(shortest_status_line - 2, " ");
  return complete;
}

std::string text_or_file(const std::string& option, const std::string& text) {
  return text.starts_with('@') ? read_file(option, text.substr(1)) : text;
}

std::string bytes_or_file(const std::string& option, const std::string& text) {
  if (text.starts_with('@')) return read_file(option, text.substr(1));
  const auto bytes = unescape(text);
  if (!bytes) refuse_value(option, R"(after a \ only r, n, t, 0, \ or xHH has a meaning)");
  return *bytes;
}

std::vector<std::string> lines_of_file(const std::string& option, const std::string& file) {
  const std::string text = read_file(option, file);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.pop_back();
    if (!line.empty() && line.front() != '#') lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes.push_back(text[i]);
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (const auto which = escape_letters.find(text[i]); which != std::string_view::npos) {
      bytes.push_back(escaped_bytes[which]);
    } else if (text[i] == 'x' && i + 2 < text.size()) {
      unsigned value = 0;
      const char* const digits = text.data() + i + 1;
      if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return std::nullopt;
      bytes.push_back(static_cast<char>(value));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

std::optional<LengthField> parse_length_field(std::string_view text) {
  const auto number = [&text]<typename Number>(Number& value) {
    const char* const end = text.data() + text.size();
    const auto [read_to, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(read_to - text.data()));
    return true;
  };
  constexpr std::size_t longest_offset = 1 << 16;
  constexpr std::int64_t most_more = 1 << 20;
  LengthField field;
  std::size_t bits = 0;
  if (!text.starts_with('u')) return std::nullopt;
  text.remove_prefix(1);
  if (!number(bits) || bits == 0 || bits > 64 || bits % 8 != 0) return std::nullopt;
  field.width = bits / 8;
  field.little_endian = text.starts_with("le");
  if (field.little_endian || text.starts_with("be")) {
    text.remove_prefix(2);
  } else if (field.width > 1) {
    return std::nullopt;
  }
  if (text.starts_with('@')) {
    text.remove_prefix(1);
    if (!number(field.offset) || field.offset > longest_offset) return std::nullopt;
  }
  if (text.starts_with('+') || text.starts_with('-')) {
    const bool fewer = text.front() == '-';
    text.remove_prefix(1);
    if (!number(field.more) || field.more < 0 || field.more > most_more) return std::nullopt;
    if (fewer) field.more = -field.more;
  }
  return text.empty() ? std::optional{field} : std::nullopt;
}

std::string escape(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (const auto which = escaped_bytes.find(c); which != std::string_view::npos)
      text.append({'\\', escape_letters[which]});
    else if (c < ' ' || c == 0x7f)
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text.push_back(c);
  }
  return text;
}

std::string excerpt(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, std::min(bytes.find_first_of("\r\n"), longest_excerpt)))
    text.push_back(c < ' ' || c == 0x7f ? '?' : c);
  return text;
}

}  // namespace netdyno::load
