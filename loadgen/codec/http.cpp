#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/cli/url.hpp"
#include "loadgen/codec/codecs.hpp"
#include "loadgen/codec/service_times.hpp"

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

class HttpDecoder : public Decoder {
 public:
  /// `size`: of the stamp (http), or of the body (web).
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

 protected:
  std::size_t size() const { return size_; }

 private:
  /// Judges the body of a response with status 200.
  virtual void check(std::string_view body, std::size_t whole, ReplySink& sink) const = 0;

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
      if (head->ok) {
        check(bytes.substr(end + end_of_head.size(), head->content_length), whole, sink);
      } else {
        sink.on_corrupt();
      }
      if (head->last) sink.on_last();
      bytes.remove_prefix(whole);
    }
  }

  std::size_t size_;
  std::size_t needed_ = 0;  // size of the response at the front of pending_; 0 while its head is incomplete
  std::string pending_;
};

/// The reply repeats the request target.
class TargetDecoder final : public HttpDecoder {
  using HttpDecoder::HttpDecoder;

  void check(std::string_view body, std::size_t whole, ReplySink& sink) const override {
    if (!body.starts_with('/')) return sink.on_corrupt();
    check_stamp(body.substr(1), size(), whole, sink);
  }
};

/// The reply is the stamp, filled with one letter.
class WebDecoder final : public HttpDecoder {
  using HttpDecoder::HttpDecoder;

  void check(std::string_view body, std::size_t whole, ReplySink& sink) const override {
    if (body.size() != size() || !is_filling(body.substr(min_stamp_size))) return sink.on_corrupt();
    check_stamp(body.substr(0, min_stamp_size), min_stamp_size, whole, sink);
  }

  static bool is_filling(std::string_view text) {
    return text.empty() || (text.front() == 'x' && text.substr(1) == text.substr(0, text.size() - 1));
  }
};

/// What follows the target in each request.
std::string format_end(const LoadPlan& plan) {
  const auto url = format_url(plan.url);
  return " HTTP/1.1\r\nHost: " + url.substr(url.find("://") + 3) + "\r\n\r\n";
}

class HttpCodec final : public Codec {
 public:
  explicit HttpCodec(const LoadPlan& plan) : size_(plan.size), end_(format_end(plan)) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    out.append("GET /");
    append_stamp(stamp, size_, out);
    out.append(end_);
    return 0;
  }
  std::optional<std::size_t> reply_size(const Stamp&) const override { return std::nullopt; }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<TargetDecoder>(size_); }

 private:
  std::size_t size_;
  std::string end_;
};

class WebCodec final : public Codec {
 public:
  explicit WebCodec(const LoadPlan& plan)
      : size_(plan.size),
        times_(plan),
        kind_(plan.service_kind == ServiceKind::cpu ? "cpu=" : "wait="),
        chunks_(plan.chunks),
        end_(fmt::format("{}size={}{}", format_stream(plan), plan.size, format_end(plan))) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    out.append("GET /");
    append_stamp(stamp, min_stamp_size, out);
    out.append("?");
    if (const auto service_us = times_.find_us(stamp); service_us > 0)
      fmt::format_to(std::back_inserter(out), "{}{}us&", kind_, service_us);
    out.append(end_);
    return 0;
  }
  std::optional<std::size_t> reply_size(const Stamp&) const override { return std::nullopt; }
  std::unique_ptr<Decoder> make_decoder() const override {
    if (chunks_ > 0) return make_stream_decoder(chunks_, size_);
    return std::make_unique<WebDecoder>(size_);
  }

 private:
  static std::string format_stream(const LoadPlan& plan) {
    return plan.chunks > 0 ? fmt::format("chunks={}&every={}us&", plan.chunks, plan.every / 1000) : "";
  }

  std::size_t size_;
  ServiceTimes times_;
  std::string_view kind_;
  std::size_t chunks_;
  std::string end_;
};

}  // namespace

std::unique_ptr<Codec> make_http_codec(const LoadPlan& plan) { return std::make_unique<HttpCodec>(plan); }

std::unique_ptr<Codec> make_web_codec(const LoadPlan& plan) { return std::make_unique<WebCodec>(plan); }

}  // namespace netdyno::load
