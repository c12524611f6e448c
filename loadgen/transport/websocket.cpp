#include "loadgen/transport/websocket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <cerrno>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/cli/url.hpp"
#include "loadgen/codec/utf8.hpp"
#include "loadgen/codec/websocket_frame.hpp"
#include "loadgen/codec/websocket_handshake.hpp"
#include "loadgen/transport/layer.hpp"

namespace netdyno::load {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t longest_handshake = 64 << 10;

/// Whether a head is an interim response, which another one follows (RFC 9110, 15.2): 103 Early Hints, say. 101 is
/// none.
bool is_interim(std::string_view head) {
  constexpr std::size_t code = std::string_view{"HTTP/1.1 "}.size();
  return head.starts_with("HTTP/") && head.substr(code, 1) == "1" && head.substr(code, 3) != "101";
}

using Reply = http::response<http::empty_body>;

/// Whether a header's list has this token.
bool has_token(std::string_view list, std::string_view token) {
  const http::token_list tokens{{list.data(), list.size()}};
  return std::any_of(tokens.begin(), tokens.end(), [token](beast::string_view found) {
    return token == std::string_view{found.data(), found.size()};
  });
}

/// The words that the headers of a name list.
std::string list_words(const auto& headers, std::string_view name) {
  std::string words;
  for (const std::string& header : headers)
    if (names_header(header, name)) words += (words.empty() ? "" : ",") + header.substr(header.find(':') + 1);
  return words;
}

/// What of the server's agreement makes a client fail the connection (RFC 6455, 4.1); empty where nothing does.
/// `offered`: the subprotocols that were.
std::string disagreement(const Reply& reply, const std::string& key, const std::string& offered) {
  const auto value = [&reply](http::field name) {
    const auto text = reply[name];
    return std::string_view{text.data(), text.size()};
  };
  if (reply.version() < 11) return "it is no HTTP/1.1";
  if (!beast::iequals(reply[http::field::upgrade], "websocket")) return "its Upgrade is not websocket";
  if (!has_token(lower_case(value(http::field::connection)), "upgrade")) return "its Connection does not say Upgrade";
  if (reply.count(http::field::sec_websocket_accept) != 1 ||
      value(http::field::sec_websocket_accept) != compute_websocket_accept(key))
    return "its Sec-WebSocket-Accept does not belong to the key";
  if (!value(http::field::sec_websocket_extensions).empty()) return "it takes an extension that was not offered";
  const auto subprotocol = value(http::field::sec_websocket_protocol);
  if (reply.count(http::field::sec_websocket_protocol) > 0 && !has_token(offered, subprotocol))
    return fmt::format("it takes the subprotocol '{}', which was not offered", excerpt(subprotocol));
  return {};
}

/// The fault in the server's answer to the handshake, in words; empty where there is none.
std::string fault_of(const std::string& received, const std::string& key, const std::string& offered) {
  const std::string head = with_blank_in_status_line(received);
  if (!head.starts_with("HTTP/")) return "the server answers no HTTP to the WebSocket handshake: " + excerpt(head);
  http::response_parser<http::empty_body> parser;
  parser.header_limit(longest_handshake);
  parser.skip(true);
  beast::error_code error;
  parser.put(boost::asio::buffer(head), error);
  if (error) return "the server's answer to the WebSocket handshake cannot be read: " + error.message();
  const auto& reply = parser.get();
  if (reply.result_int() != 101) {
    const auto reason = reply.reason().empty() ? http::obsolete_reason(reply.result()) : reply.reason();
    return fmt::format("the server refuses the WebSocket handshake: {} {}", reply.result_int(),
                       excerpt({reason.data(), reason.size()}));
  }
  const std::string wrong = disagreement(reply, key, offered);
  return wrong.empty() ? "" : "the server answers the WebSocket handshake wrongly: " + wrong;
}

/// Whether a close frame may have this status (RFC 6455, 7.4, and what IANA has added).
bool may_be_sent(int code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

/// The status of a close frame; 0 where it has none.
int status_of(std::string_view text) {
  return text.size() < 2 ? 0 : static_cast<unsigned char>(text[0]) << 8 | static_cast<unsigned char>(text[1]);
}

/// What a close frame is answered by: its status, or 1002 for one that it may not have.
std::string_view close_reply(std::string_view text) {
  return text.empty() || may_be_sent(status_of(text)) ? text.substr(0, 2) : "\x03\xea";
}

/// In words why the server ends the WebSocket.
std::string close_words(const std::string& text) {
  if (text.empty()) return "the server closes the WebSocket";
  const int code = status_of(text);
  if (code == 0) return "the server closes the WebSocket wrongly: with half a status";
  if (!may_be_sent(code)) return fmt::format("the server closes the WebSocket wrongly: with the status {}", code);
  if (Utf8 reason; reason.take(std::string_view{text}.substr(2)) != text.size() - 2 || !reason.is_whole())
    return "the server closes the WebSocket wrongly: with a reason that is not UTF-8";
  const std::string reason = excerpt(std::string_view{text}.substr(2));
  return fmt::format("the server closes the WebSocket: {}{}{}", code, reason.empty() ? "" : " ", reason);
}

class WebSocketTransport final : public Layer {
 public:
  WebSocketTransport(const LoadPlan& plan, const ThreadShare& share, std::unique_ptr<Transport> below)
      : Layer(std::move(below)), streams_(share.size()), random_(std::random_device{}()) {
    before_key_ = fmt::format("GET {} HTTP/1.1\r\n", plan.websocket->target);
    const auto is_host = [](const std::string& header) { return names_header(header, "host"); };
    if (std::ranges::none_of(plan.websocket->headers, is_host)) before_key_ += host_header(plan.url, plan.tls.on);
    before_key_ += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n";
    for (const std::string& header : plan.websocket->headers) before_key_ += header + "\r\n";
    before_key_ += "Sec-WebSocket-Key: ";
    offered_ = list_words(plan.websocket->headers, "sec-websocket-protocol");
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    Stream& stream = streams_[connection];
    if (!stream.inside && !say(connection)) return 0;
    const std::size_t taken = below_->send(connection, bytes);
    if (taken > 0) stream.inside = taken < bytes.size();
    if (!stream.inside) say(connection);
    return taken;
  }

  void close(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    if (stream.open && !stream.inside && stream.saying.empty()) answer(connection, Opcode::close, "\x03\xe8");  // 1000
    let_go(connection);
  }

 private:
  struct Stream {
    bool open = false;
    bool inside = false;  // of a frame that was taken in part
    std::uint32_t life = 0;
    std::string key;
    std::string head;  // of the server's answer to the handshake, as far as it has come
    WebSocketReader frames;
    std::string saying;  // the rest of something that is no message
    std::string next;    // to be said after it, or after the message that is taken in part
  };

  void on_connected(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    stream.key = draw_websocket_key(random_);
    stream.next = before_key_ + stream.key + "\r\n\r\n";
    say(connection);
  }

  void on_connect_failed(std::uint32_t connection, ConnectFailure failure, int error) override {
    why_ = below_->why();
    events_->on_connect_failed(connection, failure, error);
  }

  void on_received(std::uint32_t connection, std::string_view bytes, KernelStamp arrived) override {
    const std::uint32_t life = streams_[connection].life;
    std::string rest;
    if (!streams_[connection].open) {
      rest = open(connection, bytes);
      bytes = rest;
      if (streams_[connection].life != life || bytes.empty()) return;
    }
    data_.clear();
    WebSocketReader::ControlFrames control;
    const char* const wrong = streams_[connection].frames.receive(bytes, data_, control);
    if (!data_.empty()) events_->on_received(connection, data_, arrived);
    if (streams_[connection].life != life) return;  // it was closed meanwhile, and perhaps reconnected
    if (control.ping) answer(connection, Opcode::pong, *control.ping);
    if (control.close) {
      answer(connection, Opcode::close, close_reply(*control.close));
      return end(connection, CloseReason::closed_by_server, close_words(*control.close));
    }
    if (wrong != nullptr)
      end(connection, CloseReason::unreadable, std::string{"what the server sends is no WebSocket: "} + wrong);
  }

  void on_writable(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    if (!stream.inside && !say(connection)) return;
    if (stream.open) events_->on_writable(connection);
  }

  void on_closed(std::uint32_t connection, CloseReason reason) override {
    const bool was_open = streams_[connection].open;
    forget(connection);
    why_ = below_->why();
    if (was_open) return events_->on_closed(connection, reason);
    if (why_.empty()) why_ = "the connection ended in the WebSocket handshake";
    events_->on_connect_failed(connection, ConnectFailure::reset, ECONNRESET);
  }

  /// Takes what belongs to the server's answer to the handshake; returns what follows it.
  std::string open(std::uint32_t connection, std::string_view bytes) {
    Stream& stream = streams_[connection];
    stream.head.append(bytes);
    auto end_of_answer = stream.head.find("\r\n\r\n");
    while (end_of_answer != std::string::npos && is_interim(stream.head)) {
      stream.head.erase(0, end_of_answer + 4);
      end_of_answer = stream.head.find("\r\n\r\n");
    }
    std::string wrong;
    if (end_of_answer == std::string::npos) {
      constexpr std::string_view first = "HTTP/";
      const bool may_be_http =
          std::string_view{stream.head}.substr(0, first.size()) == first.substr(0, stream.head.size());
      if (may_be_http && stream.head.size() <= longest_handshake) return {};
      wrong =
          may_be_http ? "the server's answer to the WebSocket handshake does not end" : fault_of(stream.head, "", "");
    }
    std::string rest;
    if (wrong.empty()) {
      rest = stream.head.substr(end_of_answer + 4);
      stream.head.resize(end_of_answer + 4);
      wrong = fault_of(stream.head, stream.key, offered_);
    }
    if (wrong.empty()) {
      stream.head = {};
      stream.open = true;
      events_->on_connected(connection);
      return rest;
    }
    let_go(connection);
    why_ = wrong;
    events_->on_connect_failed(connection, ConnectFailure::other, EPROTO);
    return {};
  }

  void answer(std::uint32_t connection, Opcode opcode, std::string_view text) {
    Stream& stream = streams_[connection];
    stream.next = text;
    frame_websocket(opcode, static_cast<std::uint32_t>(random_()), stream.next, 0);
    if (!stream.inside) say(connection);
  }

  /// Whether all is sent that is no message.
  bool say(std::uint32_t connection) {
    Stream& stream = streams_[connection];
    while (!stream.saying.empty() || !stream.next.empty()) {
      if (stream.saying.empty()) stream.saying = std::exchange(stream.next, {});
      stream.saying.erase(0, below_->send(connection, stream.saying));
      if (!stream.saying.empty()) return false;
    }
    return true;
  }

  void forget(std::uint32_t connection) override {
    const std::uint32_t life = streams_[connection].life + 1;
    streams_[connection] = {};
    streams_[connection].life = life;
  }

  std::vector<Stream> streams_;
  std::mt19937 random_;
  std::string before_key_;
  std::string offered_;  // subprotocols
  std::string data_;     // of what was read last
};

}  // namespace

std::unique_ptr<Transport> make_websocket_transport(const LoadPlan& plan, const ThreadShare& share,
                                                    std::unique_ptr<Transport> below) {
  return std::make_unique<WebSocketTransport>(plan, share, std::move(below));
}

}  // namespace netdyno::load
