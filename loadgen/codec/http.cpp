#include <algorithm>
#include <charconv>

#include "lib/cli/url.hpp"
#include "loadgen/codec/codecs.hpp"

namespace netdyno::load {
namespace {

constexpr std::size_t max_head = 16 << 10;
constexpr std::string_view end_of_head = "\r\n\r\n";
constexpr std::string_view content_length = "content-length:";
constexpr std::string_view connection = "connection:";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Whether a line of a head has this name, which is lower-case here.
bool begins_with(std::string_view line, std::string_view name) {
  return line.size() >= name.size() && lower(line.front()) == name.front() &&
         std::ranges::equal(line.substr(0, name.size()), name, {}, lower);
}

/// The part of a response's head that matters here (RFC 9112).
struct ResponseHead {
  bool ok = false;  // status 200
  std::size_t content_length = 0;
  bool last = false;  // the server closes the connection behind it
};

std::optional<std::size_t> parse_length(std::string_view value) {
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return length;
}

/// Nothing when the head is malformed or does not say how long its body is.
std::optional<ResponseHead> parse_head(std::string_view head) {
  ResponseHead result;
  const auto line_end = head.find("\r\n");
  const auto status_line = head.substr(0, line_end);
  if (!status_line.starts_with("HTTP/1.1 ") || status_line.size() < 12) return std::nullopt;
  result.ok = status_line.substr(9, 3) == "200";

  std::optional<std::size_t> length;
  while (!head.empty()) {
    const auto end = head.find("\r\n");
    const auto line = head.substr(0, end);
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    if (!length && begins_with(line, content_length)) {
      length = parse_length(line.substr(content_length.size()));
      if (!length) return std::nullopt;
    } else if (begins_with(line, connection)) {
      result.last = result.last || announces_close(line);
    }
  }
  result.content_length = length.value_or(0);
  return length ? std::optional{result} : std::nullopt;
}

class HttpDecoder final : public Decoder {
 public:
  explicit HttpDecoder(std::size_t size) : size_(size) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    if (pending_.empty()) {
      const bool good = consume(bytes, sink);
      pending_.assign(bytes);
      return good;
    }
    pending_.append(bytes);
    if (pending_.size() < needed_) return true;
    std::string_view rest{pending_};
    const bool good = consume(rest, sink);
    pending_.erase(0, pending_.size() - rest.size());
    return good;
  }
  bool at_boundary() const override { return pending_.empty(); }

 private:
  /// Takes complete responses off the front of `bytes`.
  bool consume(std::string_view& bytes, ReplySink& sink) {
    needed_ = 0;
    while (true) {
      const auto end = bytes.find(end_of_head);
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      if (end == std::string_view::npos) return bytes.size() < max_head + end_of_head.size();
      if (end > max_head) return false;
      const auto head = parse_head(bytes.substr(0, end));
      if (!head || head->content_length > max_head + size_) return false;
      const std::size_t whole = end + end_of_head.size() + head->content_length;
      if (bytes.size() < whole) {
        needed_ = whole;
        return true;
      }
      check(*head, bytes.substr(end + end_of_head.size(), head->content_length), whole, sink);
      if (head->last) sink.on_last();
      bytes.remove_prefix(whole);
    }
  }

  void check(const ResponseHead& head, std::string_view body, std::size_t whole, ReplySink& sink) const {
    if (!head.ok || !body.starts_with('/')) return sink.on_corrupt();
    check_stamp(body.substr(1), size_, whole, sink);
  }

  std::size_t size_;
  std::size_t needed_ = 0;  // size of the response at the front of pending_; 0 while its head is incomplete
  std::string pending_;
};

class HttpCodec final : public Codec {
 public:
  explicit HttpCodec(const LoadPlan& plan) : size_(plan.size), host_(format_url(plan.url)) {
    host_.erase(0, host_.find("://") + 3);
  }

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    out.append("GET /");
    append_stamp(stamp, size_, out);
    out.append(" HTTP/1.1\r\nHost: ").append(host_).append("\r\n\r\n");
    return 0;
  }
  std::optional<std::size_t> reply_size(const Stamp&) const override { return std::nullopt; }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<HttpDecoder>(size_); }

 private:
  std::size_t size_;
  std::string host_;
};

}  // namespace

std::unique_ptr<Codec> make_http_codec(const LoadPlan& plan) { return std::make_unique<HttpCodec>(plan); }

}  // namespace netdyno::load
