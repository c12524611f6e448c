#include "loadgen/transport/grpc.hpp"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/cli/url.hpp"
#include "loadgen/codec/grpc_message.hpp"
#include "loadgen/transport/layer.hpp"

namespace netdyno::load {
namespace {

constexpr std::string_view grpc_method = "/netdyno.unary.Work/Answer";
// The server need not wait for leave to send a reply of 1 MiB, nor to send many of them.
constexpr std::uint32_t stream_window = 2 << 20;
constexpr std::int32_t connection_window = 64 << 20;
constexpr std::size_t longest_words = 200;  // of a server
constexpr std::size_t worth_keeping = 256 << 10;

/// The codes of grpc-status by number (grpc.github.io/grpc/core/md_doc_statuscodes.html).
constexpr std::string_view grpc_codes[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// One request on its stream.
struct Call {
  std::string request;
  std::size_t sent = 0;
  std::string reply;
  std::string http_status;
  std::string content_type;
  std::string grpc_status;  // empty before the trailers
  std::string grpc_message;

  void begin(std::string_view message) {
    request = message;
    sent = 0;
    for (std::string* text : {&reply, &http_status, &content_type, &grpc_status, &grpc_message}) text->clear();
  }
};

std::string status_words(const Call& call) {
  std::size_t code = 0;
  for (const char digit : call.grpc_status)
    code = std::min<std::size_t>(code * 10 + static_cast<unsigned>(digit - '0'), 99);
  return fmt::format("grpc-status {}{}{}{}", call.grpc_status, code < std::size(grpc_codes) ? " " : "",
                     code < std::size(grpc_codes) ? grpc_codes[code] : "",
                     call.grpc_message.empty() ? "" : ": " + call.grpc_message);
}

/// Why a stream that has ended has no reply that can be read; empty where it has one. `code`: of RST_STREAM.
std::string find_fault(const Call& call, std::uint32_t code, bool refused_by_goaway) {
  if (refused_by_goaway) return "the server takes no more requests on this connection (GOAWAY)";
  if (code != NGHTTP2_NO_ERROR) return fmt::format("the server resets the stream: {}", nghttp2_http2_strerror(code));
  if (call.http_status != "200") return fmt::format("status {}", call.http_status);
  if (!call.content_type.starts_with("application/grpc")) return "its content-type is not application/grpc";
  if (call.grpc_status.empty()) return "its stream ends without grpc-status";
  if (call.grpc_status != "0") return status_words(call);
  if (call.reply.empty() || find_grpc_size(call.reply) != call.reply.size() || call.reply.front() != '\0')
    return "its reply is not one uncompressed message";
  if (find_stamp_text(call.reply) != find_stamp_text(call.request)) return "its reply answers another request";
  return {};
}

nghttp2_nv make_header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));  // copied, by its flags
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

class GrpcTransport final : public Layer {
 public:
  GrpcTransport(const LoadPlan& plan, const ThreadShare& share, std::unique_ptr<Transport> below)
      : Layer(std::move(below)), scheme_(plan.tls.on ? "https" : "http"), sessions_(share.size()) {
    const std::string url = format_url(plan.url);
    authority_ = url.substr(url.find("://") + 3);
    nghttp2_session_callbacks* callbacks = nullptr;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc{};
    callbacks_.reset(callbacks);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, note_frame);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, note_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, note_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, note_end);
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    Http2Session& session = sessions_[connection];
    std::size_t taken = 0;
    while (taken < bytes.size() && session.unsent.empty() && session.has_place()) {
      const std::size_t size = find_grpc_size(bytes.substr(taken));
      if (!begin_call(session, bytes.substr(taken, size))) break;
      taken += size;
    }
    flush(connection);
    session.awaited = taken < bytes.size();
    return taken;
  }

  void close(std::uint32_t connection) override {
    Http2Session& session = sessions_[connection];
    if (session.open && session.unsent.empty()) {
      nghttp2_session_terminate_session(session.http2.get(), NGHTTP2_NO_ERROR);
      flush(connection);
    }
    let_go(connection);
  }

 private:
  struct Delete {
    void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
    void operator()(nghttp2_session_callbacks* callbacks) const { nghttp2_session_callbacks_del(callbacks); }
  };

  struct Failed {
    Stamp stamp;
    std::string why;
  };

  /// The state of a connection.
  struct Http2Session {
    std::unique_ptr<nghttp2_session, Delete> http2;
    bool settled = false;  // the server's SETTINGS are here
    bool open = false;     // and the thread knows
    bool awaited = false;  // on_writable
    std::uint32_t life = 0;
    std::string unsent;     // frames
    std::string goes_away;  // the words of GOAWAY
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<Call*> spare;    // of these, without a request
    std::string data;            // messages of streams that ended, of which the thread knows nothing yet
    std::vector<Failed> failed;  // and the requests of those that ended without one

    std::size_t in_flight() const { return calls.size() - spare.size(); }
    bool has_place() const {
      return goes_away.empty() &&
             in_flight() < nghttp2_session_get_remote_settings(http2.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    }
  };

  // --- called by libnghttp2, within nghttp2_session_mem_recv and nghttp2_session_mem_send

  static Call* find_call(nghttp2_session* http2, std::int32_t stream) {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(http2, stream));
  }

  static int note_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& session = *static_cast<Http2Session*>(user);
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) session.settled = true;
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    const auto& goaway = frame->goaway;
    const std::string_view words{reinterpret_cast<const char*>(goaway.opaque_data),
                                 std::min(goaway.opaque_data_len, longest_words)};
    session.goes_away = fmt::format("the server ends the connection: GOAWAY, {}{}{}",
                                    nghttp2_http2_strerror(goaway.error_code), words.empty() ? "" : ": ", words);
    return 0;
  }

  static int note_header(nghttp2_session* http2, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                         void*) {
    Call* const call = find_call(http2, frame->hd.stream_id);
    if (call == nullptr) return 0;
    const std::string_view key{reinterpret_cast<const char*>(name), name_size};
    const std::string_view text{reinterpret_cast<const char*>(value), std::min(value_size, longest_words)};
    if (key == ":status") call->http_status = text;
    if (key == "content-type") call->content_type = text;
    if (key == "grpc-status") call->grpc_status = text;
    if (key == "grpc-message") call->grpc_message = text;
    return 0;
  }

  static int note_data(nghttp2_session* http2, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                       std::size_t size, void*) {
    if (Call* const call = find_call(http2, stream)) call->reply.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int note_end(nghttp2_session* http2, std::int32_t stream, std::uint32_t code, void* user) {
    auto& session = *static_cast<Http2Session*>(user);
    Call* const call = find_call(http2, stream);
    if (call == nullptr) return 0;
    const bool refused = !session.goes_away.empty() && code == NGHTTP2_REFUSED_STREAM;
    std::string fault = find_fault(*call, code, refused);
    if (fault.empty())
      session.data += call->reply;
    else
      session.failed.push_back({read_stamp(find_stamp_text(call->request)).value(), std::move(fault)});
    if (call->reply.capacity() > worth_keeping) call->reply = {};
    session.spare.push_back(call);
    return 0;
  }

  static ssize_t read_request(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t room,
                              std::uint32_t* flags, nghttp2_data_source* source, void*) {
    Call& call = *static_cast<Call*>(source->ptr);
    const std::size_t size = call.request.copy(reinterpret_cast<char*>(buffer), room, call.sent);
    call.sent += size;
    if (call.sent == call.request.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  // --- events of the transport below

  void on_connected(std::uint32_t connection) override {
    Http2Session& session = sessions_[connection];
    nghttp2_session* http2 = nullptr;
    if (nghttp2_session_client_new(&http2, callbacks_.get(), &session) != 0) throw std::bad_alloc{};
    session.http2.reset(http2);
    constexpr std::array<nghttp2_settings_entry, 2> settings{
        {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window}}};
    nghttp2_submit_settings(http2, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(http2, NGHTTP2_FLAG_NONE, 0, connection_window);
    flush(connection);
  }

  void on_connect_failed(std::uint32_t connection, ConnectFailure failure, int error) override {
    why_ = below_->why();
    events_->on_connect_failed(connection, failure, error);
  }

  void on_received(std::uint32_t connection, std::string_view bytes, KernelStamp arrived) override {
    Http2Session& session = sessions_[connection];
    const std::uint32_t life = session.life;
    const ssize_t read = nghttp2_session_mem_recv(session.http2.get(),
                                                  reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (read == NGHTTP2_ERR_NOMEM) throw std::bad_alloc{};
    flush(connection);  // also what tells the server why this program ends the connection
    const bool is_over = read < 0 || (nghttp2_session_want_read(session.http2.get()) == 0 &&
                                      nghttp2_session_want_write(session.http2.get()) == 0);
    if (!session.settled && !is_over) return;
    if (!session.settled) {
      std::string why = session.goes_away.empty() ? "what the server answers is no HTTP/2" : session.goes_away;
      let_go(connection);
      why_ = std::move(why);
      return events_->on_connect_failed(connection, ConnectFailure::other, EPROTO);
    }
    if (!std::exchange(session.open, true)) events_->on_connected(connection);
    if (session.life == life) hand_on(connection, arrived);
    if (session.life != life) return;  // it was closed meanwhile, and perhaps reconnected
    if (is_over && session.goes_away.empty())
      return end(connection, CloseReason::unreadable, "what the server sends is no HTTP/2");
    if (!session.goes_away.empty() && session.in_flight() == 0)
      return end(connection, CloseReason::closed_by_server, std::string{session.goes_away});
    offer_places(connection);
  }

  void on_writable(std::uint32_t connection) override {
    flush(connection);
    offer_places(connection);
  }

  void on_closed(std::uint32_t connection, CloseReason reason) override {
    const bool was_open = sessions_[connection].open;
    std::string why = std::exchange(sessions_[connection].goes_away, {});
    forget(connection);
    why_ = why.empty() ? std::string{below_->why()} : std::move(why);
    if (was_open) return events_->on_closed(connection, reason);
    if (why_.empty()) why_ = "the connection ended before the server's SETTINGS of HTTP/2";
    events_->on_connect_failed(connection, ConnectFailure::reset, ECONNRESET);
  }

  // ---

  /// Tells the thread how streams have ended. One may do so as its request is sent: then with the next bytes that come.
  void hand_on(std::uint32_t connection, KernelStamp arrived) {
    Http2Session& session = sessions_[connection];
    const std::uint32_t life = session.life;
    const std::vector<Failed> failed = std::exchange(session.failed, {});
    data_.clear();
    data_.swap(session.data);
    if (!data_.empty()) events_->on_received(connection, data_, arrived);
    if (data_.capacity() > worth_keeping) data_ = {};
    for (const auto& [stamp, why] : failed)
      if (session.life == life) events_->on_request_failed(connection, stamp, why);
  }

  /// Opens a stream for a request. False where the connection has none left.
  bool begin_call(Http2Session& session, std::string_view request) {
    if (session.spare.empty()) session.spare.push_back(session.calls.emplace_back(std::make_unique<Call>()).get());
    Call* const call = session.spare.back();
    call->begin(request);
    const std::array headers{make_header(":method", "POST"),      make_header(":scheme", scheme_),
                             make_header(":path", grpc_method),   make_header(":authority", authority_),
                             make_header("te", "trailers"),       make_header("content-type", "application/grpc"),
                             make_header("user-agent", "netdyno")};
    const nghttp2_data_provider body{{.ptr = call}, read_request};
    const std::int32_t stream =
        nghttp2_submit_request(session.http2.get(), nullptr, headers.data(), headers.size(), &body, call);
    if (stream == NGHTTP2_ERR_NOMEM) throw std::bad_alloc{};
    if (stream < 0) return false;
    session.spare.pop_back();
    return true;
  }

  /// Sends the frames that are due, as far as that goes.
  void flush(std::uint32_t connection) {
    Http2Session& session = sessions_[connection];
    const std::uint8_t* frames = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session.http2.get(), &frames)) != 0;) {
      if (size < 0) throw std::bad_alloc{};  // its callbacks here do not fail
      session.unsent.append(reinterpret_cast<const char*>(frames), static_cast<std::size_t>(size));
    }
    if (!session.unsent.empty()) session.unsent.erase(0, below_->send(connection, session.unsent));
  }

  /// Tells the thread if a request that had to wait may go out now.
  void offer_places(std::uint32_t connection) {
    Http2Session& session = sessions_[connection];
    if (session.open && session.awaited && session.unsent.empty() && session.has_place()) {
      session.awaited = false;
      events_->on_writable(connection);
    }
  }

  void forget(std::uint32_t connection) override {
    const std::uint32_t life = sessions_[connection].life + 1;
    sessions_[connection] = {};
    sessions_[connection].life = life;
  }

  std::string scheme_;
  std::string authority_;
  std::unique_ptr<nghttp2_session_callbacks, Delete> callbacks_;
  std::vector<Http2Session> sessions_;  // libnghttp2 knows where each of them is
  std::string data_;                    // what is handed on
};

}  // namespace

std::unique_ptr<Transport> make_grpc_transport(const LoadPlan& plan, const ThreadShare& share,
                                               std::unique_ptr<Transport> below) {
  return std::make_unique<GrpcTransport>(plan, share, std::move(below));
}

}  // namespace netdyno::load
