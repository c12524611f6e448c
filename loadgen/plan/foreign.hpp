#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cli/url.hpp"

/// Messages to servers that know nothing of stamps: they answer in order, on each connection.
namespace netdyno::load {

/// The check of a reply, beside its status.
enum class Check { status, length, hash, echo };

/// The bodies of the first replies, which the others are held against: one for each target, whichever thread sees it.
class FirstBodies {
 public:
  struct Body {
    std::size_t length = 0;
    std::uint64_t digest = 0;
  };
  /// The first one of a target: `body` itself where none came before. Any thread.
  Body first(const std::string& target, const Body& body);
  /// All of them. Any thread.
  using Bodies = std::map<std::string, Body>;
  Bodies all() const;

 private:
  mutable std::mutex mutex_;
  Bodies bodies_;
};

/// A request of HTTP/1.1 (RFC 9112), and which replies to it are right.
struct HttpRequest {
  std::string method;                // empty: GET, or POST where there is a body
  std::vector<std::string> targets;  // paths
  std::vector<std::uint32_t> turns;  // the order in which they are taken, by number; empty: each in turn
  std::vector<std::string> headers;  // "name: value"
  std::optional<std::string> body;
  int lowest_status = 200;
  int highest_status = 299;
  Check check = Check::status;
  std::shared_ptr<FirstBodies> first_bodies = std::make_shared<FirstBodies>();  // of all threads of the run
};

/// A path, and how often it is taken while one of weight 1 is taken once.
struct WeightedPath {
  std::string path;
  std::uint32_t weight = 1;
};
/// `/items`, `/items=3`; behind a query, whose own `=` it is not, ` =3`. Nothing where the text is no path.
std::optional<WeightedPath> parse_path(std::string_view text);
/// An order in which each comes as often as its weight says, spread evenly. Empty where all weights are equal; nothing
/// where the order would be too long.
std::optional<std::vector<std::uint32_t>> order_by_weight(const std::vector<std::uint32_t>& weights);

/// Whether several requests have the effect of one (RFC 9110, 9.2.2).
bool is_idempotent(std::string_view method);

/// Whether a header, "name: value", has that name, which is lower-case here.
bool names_header(std::string_view header, std::string_view name);

/// The server and the target of `http://host[:port][/path]`, `https://`, `ws://` or `wss://`; nothing when the text is
/// no such URL.
struct HttpUrl {
  std::string_view scheme;
  Url server;
  std::string target;
};
std::optional<HttpUrl> parse_http_url(std::string_view text);

/// The line that names the server to itself (RFC 9110, 7.2), without its usual port.
std::string host_header(const Url& server, bool tls);

/// Whether a header, "Connection: ...", says that its message is the last one of the connection (RFC 9112, 9.6).
bool announces_close(std::string_view header);
/// Whether one of these headers does.
bool asks_to_close(const std::vector<std::string>& headers);

/// "HTTP/1.1 200", and the end of the line.
inline constexpr std::size_t shortest_status_line = 14;
/// Whether a reply's first line ends right after the status code, without the blank that a server must send there
/// (RFC 9112, 4). A client may take a line apart by its words, and all do; only Boost.Beast's parser wants the blank.
bool status_line_lacks_blank(std::string_view head);
/// The same bytes with that blank.
std::string with_blank_in_status_line(std::string_view head);

/// A number in a reply that says how many bytes follow it.
struct LengthField {
  std::size_t offset = 0;
  std::size_t width = 4;
  bool little_endian = false;
  std::int64_t more = 0;  // bytes beside those that the number counts
};
/// `u32be`, `u16le@2`, `u32be@8+12`: nothing where the text is no such field.
std::optional<LengthField> parse_length_field(std::string_view text);

/// Bytes that are sent, and how the end of a reply is found: by its mark, by its size, or by its length.
struct Exchange {
  std::string send;    // with places: {sequence}, {connection}, {random:N}
  std::string expect;  // what a reply begins with
  std::string until = "\n";
  std::size_t size = 0;               // instead of `until`: bytes of a reply; 0: by the mark
  std::optional<LengthField> length;  // instead of both
};

/// The content of the file after an '@', else the text itself. refuse_value where the file cannot be read.
std::string text_or_file(const std::string& option, const std::string& text);
/// The same, and the text has escapes: \r, \n, \t, \0, \\ and \xHH.
std::string bytes_or_file(const std::string& option, const std::string& text);
/// The lines of a file that say something: without those that are empty or begin with '#'.
std::vector<std::string> lines_of_file(const std::string& option, const std::string& file);

/// Puts bytes for \r, \n, \t, \0, \\ and \xHH. Nothing where another letter follows a backslash.
std::optional<std::string> unescape(std::string_view text);

/// The inverse of unescape: any bytes on one line, harmless to a terminal.
std::string escape(std::string_view bytes);

/// A server's bytes, on one line of at most 60 characters, and harmless to a terminal.
std::string excerpt(std::string_view bytes);

}  // namespace netdyno::load
