#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/version.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "loadgen/codec/codecs.hpp"

/// HTTP/1.1 with servers that are not ours. What they send is read by Boost.Beast's parser.
namespace netdyno::load {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::uint32_t longest_head = 64 << 10;
/// The limit of a chunk's line beyond its head: extensions, which no server uses.
constexpr std::size_t longest_rest = 2 * longest_head;

std::uint64_t fnv(std::uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// One reply, as far as it has come.
class ReplyParser final : public http::basic_parser<false> {
 public:
  ReplyParser(bool head_only, Check check, std::size_t kept) : check_(check), kept_(kept) {
    eager(true);
    skip(head_only);
    header_limit(longest_head);
    body_limit(boost::none);
  }

  int status() const { return status_; }
  const std::string& reason() const { return reason_; }
  std::size_t length() const { return length_; }
  std::uint64_t digest() const { return digest_; }
  const std::string& body() const { return body_; }

 private:
  using ErrorCode = beast::error_code;
  using Text = beast::string_view;

  void on_request_impl(http::verb, Text, Text, int, ErrorCode&) override {}
  void on_response_impl(int status, Text reason, int, ErrorCode&) override {
    status_ = status;
    if (status < 200 || status > 299) reason_.assign(reason.data(), reason.size());
  }
  void on_field_impl(http::field, Text, Text, ErrorCode&) override {}
#if BOOST_VERSION >= 109000
  void on_trailer_field_impl(http::field, Text, Text, ErrorCode&) override {}
#endif
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(Text bytes, ErrorCode&) override { return take(bytes); }
  void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text bytes, ErrorCode&) override { return take(bytes); }
  void on_finish_impl(ErrorCode&) override {}

  std::size_t take(Text bytes) {
    length_ += bytes.size();
    const std::string_view text{bytes.data(), bytes.size()};
    if (check_ == Check::hash) digest_ = fnv(digest_, text);
    if (body_.size() < kept_) body_.append(text.substr(0, kept_ - body_.size()));
    return bytes.size();
  }

  Check check_;
  std::size_t kept_;  // bytes of the body
  int status_ = 0;
  std::string reason_;
  std::size_t length_ = 0;
  std::uint64_t digest_ = 0xcbf29ce484222325ULL;
  std::string body_;
};

class ForeignHttpDecoder final : public Decoder {
 public:
  ForeignHttpDecoder(bool head_only, Check check, std::size_t kept)
      : head_only_(head_only), check_(check), kept_(kept) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    if (pending_.empty()) {
      const bool good = consume(bytes, sink);
      pending_.assign(bytes);
      return good;
    }
    pending_.append(bytes);
    std::string_view rest{pending_};
    const bool good = consume(rest, sink);
    pending_.erase(0, pending_.size() - rest.size());
    return good;
  }

  void end(ReplySink& sink) override {
    if (!reply_ || !reply_->got_some()) return;
    beast::error_code error;
    reply_->put_eof(error);
    if (!error && reply_->is_done()) deliver(sink);
  }

  /// Behind an interim response stands no boundary: the answer it announces is still to come, on this connection.
  bool at_boundary() const override { return !reply_ && pending_.empty() && size_ == 0; }

 private:
  /// Takes what can be understood off the front of `bytes`.
  bool consume(std::string_view& bytes, ReplySink& sink) {
    while (!bytes.empty()) {
      const bool begins = !reply_;
      if (begins) {
        constexpr std::string_view first = "HTTP/";
        if (bytes.substr(0, first.size()) != first.substr(0, bytes.size())) {
          sink.on_broken(fmt::format("the reply is no HTTP: {}", excerpt(bytes)));
          return false;
        }
        if (bytes.size() < shortest_status_line) return true;
        reply_.emplace(head_only_, check_, kept_);
      }
      beast::error_code error;
      const std::size_t taken = begins && status_line_lacks_blank(bytes)
                                    ? put_status_line(bytes, error)
                                    : reply_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
      size_ += taken;
      bytes.remove_prefix(taken);
      if (error && error != http::error::need_more) {
        sink.on_broken(fmt::format("the reply cannot be read: {}", error.message()));
        return false;
      }
      if (reply_->is_done()) {
        deliver(sink);
      } else if (error || taken == 0) {
        if (bytes.size() <= longest_rest) return true;
        sink.on_broken("the reply cannot be read: a line of it does not end");
        return false;
      }
    }
    return true;
  }

  /// A status line that lacks its blank goes into the parser with it.
  std::size_t put_status_line(std::string_view bytes, beast::error_code& error) {
    const std::string line = with_blank_in_status_line(bytes.substr(0, shortest_status_line));
    reply_->put(boost::asio::buffer(line), error);
    if (error == http::error::need_more) error = {};
    return shortest_status_line;
  }

  void deliver(ReplySink& sink) {
    // What the server says on the way (100 Continue, 103 Early Hints) is no answer yet.
    const bool interim = reply_->status() / 100 == 1 && reply_->status() != 101;
    if (!interim) {
      sink.on_plain({size_, reply_->status(), reply_->reason(), reply_->length(), reply_->digest(), reply_->body(),
                     !reply_->keep_alive()});
      size_ = 0;
    }
    reply_.reset();
  }

  bool head_only_;
  Check check_;
  std::size_t kept_;
  std::optional<ReplyParser> reply_;  // the one that has come in part
  std::size_t size_ = 0;              // of what has come of it
  std::string pending_;               // what the parser has not taken yet
};

class ForeignHttpCodec final : public Codec {
 public:
  explicit ForeignHttpCodec(const LoadPlan& plan)
      : request_(*plan.http), size_(plan.size), first_(request_.targets.size()) {
    std::string head;
    bool has_host = false;
    for (const std::string& header : request_.headers) {
      has_host = has_host || names_header(header, "host");
      head += header + "\r\n";
    }
    if (!has_host) head.insert(0, host_header(plan.url, plan.tls.on));
    const std::string body = request_.body.value_or("");
    // RFC 9110, 8.6: a method for which a body has a meaning says that there is none.
    constexpr std::string_view with_body[] = {"POST", "PUT", "PATCH"};
    if (request_.body || std::ranges::find(with_body, request_.method) != std::end(with_body))
      head += fmt::format("Content-Length: {}\r\n", body.size());
    after_target_ = " HTTP/1.1\r\n" + head + "\r\n" + body;
  }

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    out.append(request_.method).push_back(' ');
    out.append(target(stamp));
    if (request_.check == Check::echo) append_stamp(stamp, size_, out);
    out.append(after_target_);
    return 0;
  }

  std::optional<std::size_t> reply_size(const Stamp&) const override { return std::nullopt; }

  std::string fault_of(const PlainReply& reply, const Stamp& stamp) override {
    if (reply.status < request_.lowest_status || reply.status > request_.highest_status) return status_text(reply);
    if (request_.check == Check::status) return {};
    if (request_.check == Check::echo) {
      std::string sent = target(stamp);
      append_stamp(stamp, size_, sent);
      return reply.body == sent && reply.length == sent.size() ? "" : "the body is not the request's target";
    }
    auto& first = first_[index_of(stamp)];
    if (!first) first = request_.first_bodies->first(target(stamp), {reply.length, reply.digest});
    if (reply.length != first->length)
      return fmt::format("a body of {} bytes, where the first one had {}", reply.length, first->length);
    return reply.digest == first->digest ? "" : "a body unlike the first one";
  }

  std::unique_ptr<Decoder> make_decoder() const override {
    const bool stamped = request_.check == Check::echo;
    const std::size_t longest = stamped ? request_.targets.front().size() + size_ : 0;
    return std::make_unique<ForeignHttpDecoder>(request_.method == "HEAD", request_.check, longest);
  }

 private:
  std::size_t index_of(const Stamp& stamp) const {
    const std::uint64_t number = std::uint64_t{stamp.client} + stamp.sequence;
    const auto& turns = request_.turns;
    return turns.empty() ? number % request_.targets.size() : turns[number % turns.size()];
  }
  const std::string& target(const Stamp& stamp) const { return request_.targets[index_of(stamp)]; }

  static std::string status_text(const PlainReply& reply) {
    std::string reason = excerpt(reply.reason);
    if (reason.empty()) {
      const auto usual = http::obsolete_reason(static_cast<http::status>(reply.status));
      reason.assign(usual.data(), usual.size());
    }
    return fmt::format("{} {}", reply.status, reason);
  }

  const HttpRequest request_;
  std::size_t size_;  // of a stamp
  std::string after_target_;
  std::vector<std::optional<FirstBodies::Body>> first_;  // one for each target, as far as this thread knows them
};

}  // namespace

std::unique_ptr<Codec> make_foreign_http_codec(const LoadPlan& plan) {
  return std::make_unique<ForeignHttpCodec>(plan);
}

}  // namespace netdyno::load
