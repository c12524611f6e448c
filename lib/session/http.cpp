#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>

#include "lib/session/sessions.hpp"

namespace netdyno {
namespace {

constexpr std::size_t max_head = 16 << 10;
constexpr std::string_view end_of_head = "\r\n\r\n";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_ignoring_case(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Takes the text before `mark` off the front of `text`; nothing when there is no mark.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const auto position = text.find(mark);
  if (position == std::string_view::npos) return std::nullopt;
  const auto taken = text.substr(0, position);
  text.remove_prefix(position + mark.size());
  return taken;
}

/// The Connection header of a reply: `none` where the connection stays, as it does by default.
enum class ConnectionHeader { none, close, keep_alive };

/// A header's comma-separated list (RFC 9110, 5.6.1) holds `token`.
bool lists_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    auto rest = list;
    const auto item = take_until(rest, ",");
    if (same_ignoring_case(trim(item.value_or(list)), token)) return true;
    list = item ? rest : std::string_view{};
  }
  return false;
}

constexpr std::string_view text_type = "text/plain";
constexpr std::string_view json_type = "application/json";
constexpr std::string_view event_type = "text/event-stream";
const std::string items = R"([{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}])";
constexpr std::size_t most_of_a_query = 10'000'000;  // microseconds, or bytes
constexpr std::size_t most_chunks = 10'000;
constexpr std::size_t chunk_overhead = 128;  // what a chunk counts beside its data

constexpr std::string_view ok = "200 OK";
constexpr std::string_view bad_request = "400 Bad Request";
constexpr std::string_view not_implemented = "501 Not Implemented";

/// RFC 9112: what of a request's head matters here.
struct RequestHead {
  std::string_view status = ok;
  std::string_view target = {};
  bool wants_body = true;  // not of HEAD
  bool posts = false;
  std::size_t body_size = 0;
  ConnectionHeader connection = ConnectionHeader::none;
};

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}

bool is_target(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_value(std::string_view text) {
  return text.find_first_of(std::string_view{"\0\r\n", 3}) == std::string_view::npos;
}

/// The whole number before `unit`; nothing where it is none.
std::optional<std::size_t> parse_number(std::string_view text, std::string_view unit = "") {
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `takes_posts`: of the workload web.
RequestHead parse_head(std::string_view head, bool takes_posts) {
  RequestHead request;
  const auto line = take_until(head, "\r\n");
  auto rest = line.value_or(std::string_view{});
  const auto method = take_until(rest, " ");
  const auto target = take_until(rest, " ");
  const bool http_1_0 = rest == "HTTP/1.0";
  if (!method || !target || !is_token(*method) || !is_target(*target) || (!http_1_0 && rest != "HTTP/1.1"))
    return {.status = bad_request};
  request.target = *target;
  request.wants_body = *method != "HEAD";
  request.posts = takes_posts && *method == "POST";

  int hosts = 0;
  bool says_close = false;
  bool says_keep_alive = false;
  while (!head.empty()) {
    auto value = take_until(head, "\r\n").value_or(std::string_view{});
    const auto name = take_until(value, ":");
    if (!name || !is_token(*name) || !is_value(value)) return {.status = bad_request};
    value = trim(value);
    if (same_ignoring_case(*name, "host")) ++hosts;
    if (same_ignoring_case(*name, "connection")) {
      says_close = says_close || lists_token(value, "close");
      says_keep_alive = says_keep_alive || lists_token(value, "keep-alive");
    }
    const bool states_length = same_ignoring_case(*name, "content-length");
    if (request.posts && states_length) {
      const auto size = parse_number(value);
      if (!size) return {.status = bad_request};
      request.body_size = *size;
    } else if (same_ignoring_case(*name, "transfer-encoding") || (states_length && value != "0")) {
      request.status = bad_request;
    }
  }
  if (hosts > 1 || (hosts == 0 && !http_1_0)) return {.status = bad_request};
  if (*method != "GET" && *method != "HEAD" && !request.posts)
    request.status = not_implemented;  // RFC 9110, 9.1: also with a body
  if (says_close || (http_1_0 && !says_keep_alive)) {
    request.connection = ConnectionHeader::close;
  } else if (http_1_0) {
    request.connection = ConnectionHeader::keep_alive;
  }
  return request;
}

std::string_view line_of(ConnectionHeader connection) {
  switch (connection) {
    case ConnectionHeader::close:
      return "Connection: close\r\n";
    case ConnectionHeader::keep_alive:
      return "Connection: keep-alive\r\n";
    default:
      return "";
  }
}

/// The time as a header has it (RFC 9110, 5.6.7), made once a second by each thread. By hand: the names of strftime(3)
/// are those of the locale, which Qt sets.
std::string_view date() {
  constexpr std::string_view days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::string_view months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  thread_local std::time_t made_at = -1;
  thread_local std::string text;
  if (const std::time_t now = std::time(nullptr); now != made_at) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[utc.tm_wday], utc.tm_mday, months[utc.tm_mon],
                       utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
    made_at = now;
  }
  return text;
}

/// HTTP/1.1 with keep-alive and pipelining: the workload says what is answered.
class HttpSession : public Session {
 public:
  HttpSession(const SessionOptions& options, Counters& counters, bool takes_posts)
      : Session(counters),
        max_head_(std::min(max_head, options.max_frame)),
        max_body_(options.max_frame),
        takes_posts_(takes_posts) {}

 protected:
  /// Adds the work for a request and its reply. False: it is refused.
  virtual bool answer(const RequestHead& request, Effects& effects) = 0;

  void respond(const RequestHead& request, std::string_view type, std::string_view body, Effects& effects) {
    write_reply(ok, type, body, request.wants_body, request.connection, effects);
  }
  /// Begins a reply in chunks (RFC 9112, 7.1).
  void begin_chunks(const RequestHead& request, std::string_view type, Effects& effects) {
    write_head(ok, type, "Transfer-Encoding: chunked", request.connection, effects);
  }
  /// The last chunk is empty.
  void add_chunk(std::string_view bytes, Effects& effects) {
    effects.reply(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes), {});
  }
  std::size_t max_body() const { return max_body_; }

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    if (pending_.empty()) {
      consume(bytes, effects);
      pending_.assign(bytes);
      return;
    }
    pending_.append(bytes);
    std::string_view rest{pending_};
    consume(rest, effects);
    pending_.erase(0, pending_.size() - rest.size());
  }

  /// Serves the complete requests at the front of `bytes` and takes them off.
  void consume(std::string_view& bytes, Effects& effects) {
    while (!closed()) {
      while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);  // RFC 9112, 2.2
      const auto end = bytes.find(end_of_head);
      const bool complete = end != std::string_view::npos;
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      if (complete ? end > max_head_ : bytes.size() >= max_head_ + end_of_head.size())
        return refuse(bad_request, effects);
      if (!complete) return;
      const auto request = parse_head(bytes.substr(0, end + 2), takes_posts_);
      if (request.status != ok || request.body_size > max_body_)
        return refuse(request.status != ok ? request.status : bad_request, effects);
      const auto whole = end + end_of_head.size() + request.body_size;
      if (bytes.size() < whole) return;
      if (!answer(request, effects)) return refuse(bad_request, effects);
      counters().add_request();
      if (request.connection == ConnectionHeader::close) close(effects);
      bytes.remove_prefix(whole);
    }
  }

  void refuse(std::string_view status, Effects& effects) {
    write_reply(status, text_type, {}, false, ConnectionHeader::close, effects);
    protocol_error(effects);
  }

  void write_reply(std::string_view status, std::string_view type, std::string_view body, bool with_body,
                   ConnectionHeader connection, Effects& effects) {
    write_head(status, type, fmt::format("Content-Length: {}", body.size()), connection, effects);
    if (with_body) effects.reply({}, body);
  }

  /// `framing`: the header that says where the body ends.
  void write_head(std::string_view status, std::string_view type, std::string_view framing, ConnectionHeader connection,
                  Effects& effects) {
    head_.clear();
    fmt::format_to(std::back_inserter(head_), "HTTP/1.1 {}\r\nDate: {}\r\nContent-Type: {}\r\n{}\r\n{}\r\n", status,
                   date(), type, framing, line_of(connection));
    effects.reply({head_.data(), head_.size()}, {});
  }

  void on_end(Effects& effects) override {
    if (!pending_.empty()) protocol_error(effects);
  }

  std::size_t max_head_;
  std::size_t max_body_;
  bool takes_posts_;
  std::string pending_;
  fmt::memory_buffer head_;
};

/// The workload http: GET and HEAD, with an optional service time; the reply's body is the request target.
class TargetSession final : public HttpSession {
 public:
  TargetSession(const SessionOptions& options, Counters& counters)
      : HttpSession(options, counters, false),
        service_time_(options.service_time),
        service_kind_(options.service_kind) {}

 private:
  bool answer(const RequestHead& request, Effects& effects) override {
    effects.serve(service_kind_, service_time_);
    respond(request, text_type, request.target, effects);
    return true;
  }

  std::chrono::nanoseconds service_time_;
  ServiceKind service_kind_;
};

/// The query of a request of web; nothing that is missing is requested.
struct WebQuery {
  std::chrono::microseconds wait{0};
  std::chrono::microseconds cpu{0};
  std::size_t size = 0;
  std::size_t chunks = 0;
  std::chrono::microseconds every{0};
};

/// Nothing where a value is none.
std::optional<WebQuery> parse_query(std::string_view query) {
  WebQuery parsed;
  while (!query.empty()) {
    auto value = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), value.size() + 1));
    const auto name = take_until(value, "=");
    const auto number = parse_number(value, name == "size" || name == "chunks" ? "" : "us");
    if (!number || *number > most_of_a_query) return std::nullopt;
    if (name == "wait") parsed.wait = std::chrono::microseconds{*number};
    if (name == "cpu") parsed.cpu = std::chrono::microseconds{*number};
    if (name == "size") parsed.size = *number;
    if (name == "chunks") parsed.chunks = *number;
    if (name == "every") parsed.every = std::chrono::microseconds{*number};
  }
  return parsed;
}

/// The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).
class WebSession final : public HttpSession {
 public:
  WebSession(const SessionOptions& options, Counters& counters) : HttpSession(options, counters, true) {}

 private:
  bool answer(const RequestHead& request, Effects& effects) override {
    auto query = request.target;
    const auto path = take_until(query, "?").value_or(request.target);
    if (path == "/items") {
      respond(request, json_type, request.posts ? std::to_string(request.body_size) : items, effects);
      return true;
    }
    const auto work = parse_query(path.size() < request.target.size() ? query : std::string_view{});
    if (!path.starts_with('/') || !work || request.posts) return false;
    if (work->size > max_body() || work->chunks > most_chunks) return false;
    if (work->chunks * (std::max(work->size, path.size()) + chunk_overhead) > max_body()) return false;
    effects.serve(ServiceKind::wait, work->wait);
    effects.serve(ServiceKind::cpu, work->cpu);
    if (work->chunks > 0) {
      stream(request, path.substr(1), *work, effects);
      return true;
    }
    body_.assign(path.substr(1));
    body_.resize(std::max(body_.size(), work->size), 'x');
    respond(request, text_type, body_, effects);
    return true;
  }

  /// Each chunk leaves when it is due, by a schedule that begins with the request.
  void stream(const RequestHead& request, std::string_view stamp, const WebQuery& work, Effects& effects) {
    begin_chunks(request, event_type, effects);
    if (!request.wants_body) return;
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t number = 0; number < work.chunks; ++number) {
      if (number > 0 && work.every.count() > 0) effects.wait_until(began + number * work.every);
      body_ = fmt::format("{}{:04}", stamp, number);
      body_.resize(std::max(body_.size(), work.size), 'x');
      add_chunk(fmt::format("data: {}\n\n", body_), effects);
    }
    add_chunk({}, effects);
  }

  std::string body_;
};

}  // namespace

std::unique_ptr<Session> make_http_session(const SessionOptions& options, Counters& counters) {
  return std::make_unique<TargetSession>(options, counters);
}

std::unique_ptr<Session> make_web_session(const SessionOptions& options, Counters& counters) {
  return std::make_unique<WebSession>(options, counters);
}

}  // namespace netdyno
