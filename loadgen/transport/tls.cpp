#include "loadgen/transport/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/net/tls/openssl.hpp"
#include "loadgen/transport/layer.hpp"

namespace netdyno::load {
namespace {

using tls::Bio;
using tls::Context;
using tls::Method;
using tls::Pipe;
using tls::SavedSession;
using tls::Ssl;

constexpr std::size_t piece = 64 << 10;          // of plain text, encrypted at once
constexpr std::size_t longest_unsent = 1 << 20;  // nothing that a server can ask for is as long

bool is_address(const std::string& host) {
  in6_addr unused{};
  return inet_pton(AF_INET, host.c_str(), &unused) == 1 || inet_pton(AF_INET6, host.c_str(), &unused) == 1;
}

/// The name by which requests to a numeric address ask for a server; empty where they have none.
std::string name_in_host_header(const LoadPlan& plan) {
  for (const std::string& header : plan.http ? plan.http->headers : std::vector<std::string>{}) {
    if (!names_header(header, "host")) continue;
    const auto name = parse_http_url("https://" + header.substr(header.find_first_not_of(' ', header.find(':') + 1)));
    return name && !is_address(name->server.host) ? name->server.host : "";
  }
  return {};
}

std::string certificate_words(long result, const std::string& host) {
  constexpr const char* ways = "(--cacert FILE names its authority, --insecure takes any)";
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the server's certificate has expired (--insecure takes it)";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the server's certificate is not valid yet (--insecure takes it)";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("the server's certificate is not for {} (--insecure takes it)", host);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format("the server's certificate is signed by no authority that is trusted here {}", ways);
    default:
      return fmt::format("the server's certificate is refused: {} {}", X509_verify_cert_error_string(result), ways);
  }
}

/// The alert with which the server ended TLS (RFC 8446, 6.2); nothing where an error is another one. OpenSSL makes a
/// reason of each alert that it receives.
std::optional<int> received_alert(unsigned long error) {
  constexpr int most_alerts = 256;
  const int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  if (ERR_GET_LIB(error) != ERR_LIB_SSL || alert < 0 || alert >= most_alerts) return std::nullopt;
  return alert;
}

/// How a connection has to do with certificates of clients.
enum class OwnCertificate { not_requested, missing, sent };

/// The name of an alert in RFC 8446, 6. OpenSSL's own function for it knows none that are newer than TLS 1.1; its
/// reasons do, behind the version that brought them ("tlsv13 alert certificate required"; "ssl/tls alert" since 3.2).
std::string alert_name(int alert) {
  std::string reason = tls::format_reason(ERR_PACK(ERR_LIB_SSL, 0, alert + SSL_AD_REASON_OFFSET));
  for (const std::string_view word : {"sslv3 ", "tlsv1 ", "tlsv13 ", "ssl/tls ", "alert "})
    if (reason.starts_with(word)) reason.erase(0, word.size());
  return reason;
}

/// "the server refuses …: certificate required", and what to do.
std::string alert_words(int alert, OwnCertificate own) {
  const std::string name = alert_name(alert);
  const std::string refusal = fmt::format("the server refuses the connection, TLS alert {}: {}", alert, name);
  const bool missing = own == OwnCertificate::missing || alert == SSL_AD_CERTIFICATE_REQUIRED;
  if (missing) return refusal + "; it asks for a certificate (--cert FILE, --key FILE)";
  if (own == OwnCertificate::sent) return refusal + "; it had asked for the certificate of --cert";
  return refusal;
}

std::string handshake_words(SSL* ssl, const std::string& host, OwnCertificate own) {
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return certificate_words(SSL_get_verify_result(ssl), host);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
    return "what the server answers is no TLS";
  if (const auto alert = received_alert(error)) return alert_words(*alert, own);
  return "the TLS handshake failed: " + tls::format_reason(error);
}

/// The reason that ends a connection after its handshake.
std::string stream_words(unsigned long error, OwnCertificate own) {
  if (const auto alert = received_alert(error)) return alert_words(*alert, own);
  return "what the server sends is no TLS: " + tls::format_reason(error);
}

/// Takes the client's own certificate and its key. Ends the program where one of them cannot be had.
void use_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    die(fmt::format("--cert: '{}' holds no certificate in PEM that can be read ({})", certificate,
                    tls::format_reason(ERR_peek_error())));
  const char* const option = key.empty() ? "--cert" : "--key";
  const std::string& file = key.empty() ? certificate : key;
  switch (tls::use_key(context, file)) {
    case tls::KeyState::taken:
      return;
    case tls::KeyState::encrypted:
      die(fmt::format("{}: the key in '{}' is encrypted: 'openssl pkey -in {} -out FILE' leaves it in the clear",
                      option, file, file));
    case tls::KeyState::mismatched:
      die(fmt::format("{}: the key in '{}' is not that of the certificate in '{}'", option, file, certificate));
    case tls::KeyState::unreadable:
      die(fmt::format("{}: '{}' holds no private key in PEM that can be read ({}){}", option, file,
                      tls::format_reason(ERR_peek_last_error()), key.empty() ? "; --key FILE names another file" : ""));
  }
}

class TlsTransport final : public Layer {
 public:
  TlsTransport(const LoadPlan& plan, const ThreadShare& share, std::unique_ptr<Transport> below)
      : Layer(std::move(below)),
        host_(host_without_zone(plan.url.host)),
        has_name_(!is_address(host_)),
        server_name_(has_name_ ? host_ : name_in_host_header(plan)),
        method_(tls::make_method()),
        bio_(BIO_new(method_.get())),
        context_(make_context(plan)),
        streams_(share.size()) {
    BIO_set_data(bio_.get(), &pipe_);
    BIO_set_init(bio_.get(), 1);
  }

  std::size_t send(std::uint32_t connection, std::string_view bytes) override {
    Stream& stream = streams_[connection];
    std::size_t taken = 0;
    while (taken < bytes.size() && stream.unsent.empty()) {
      const std::string_view next = bytes.substr(taken, piece);
      ERR_clear_error();
      if (SSL_write(stream.ssl.get(), next.data(), static_cast<int>(next.size())) <= 0) {
        throw_without_memory();
        broken_.push_back({connection, stream.life});
        return taken;
      }
      taken += next.size();
      flush(connection);
    }
    stream.awaited = taken < bytes.size();
    return taken;
  }

  void close(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    // A peer that closes announces it (RFC 8446, 6.1); OpenSSL forgets the session of one that does not.
    if (stream.open && stream.unsent.empty()) {
      ERR_clear_error();
      SSL_shutdown(stream.ssl.get());
      flush(connection);
    }
    let_go(connection);
  }

  bool wait(Nanos until, TransportEvents& events) override {
    const bool any = Layer::wait(broken_.empty() ? until : 0, events);
    for (const auto& [connection, life] : std::exchange(broken_, {}))
      if (streams_[connection].life == life && streams_[connection].open)
        close_and_tell(connection, CloseReason::unreadable, "TLS cannot go on");
    return any;
  }

  const Handshakes* handshakes() const override { return &handshakes_; }

 private:
  struct Stream {
    Ssl ssl;
    bool open = false;  // the handshake is done
    OwnCertificate own = OwnCertificate::not_requested;
    bool awaited = false;    // on_writable
    std::uint32_t life = 0;  // another for each connection that has this number
    Nanos began = 0;
    std::string unsent;  // encrypted
  };

  Context make_context(const LoadPlan& plan) {
    Context context{SSL_CTX_new(TLS_client_method())};
    if (!context) die("OpenSSL: " + tls::format_reason(ERR_peek_error()));
    SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);  // half the memory of a connection that waits
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(context.get(), plan.tls.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
    const std::string& file = plan.tls.authorities;
    if (file.empty()) {
      SSL_CTX_set_default_verify_paths(context.get());
    } else if (SSL_CTX_load_verify_file(context.get(), file.c_str()) != 1) {
      die(fmt::format("--cacert: '{}' holds no certificate that can be read", file));
    }
    if (!plan.tls.certificate.empty()) use_certificate(context.get(), plan.tls.certificate, plan.tls.key);
    SSL_CTX_set_cert_cb(context.get(), note_request, nullptr);
    constexpr unsigned char http[] = "\x08http/1.1", http2[] = "\x02h2";
    if (plan.http || plan.websocket)
      SSL_CTX_set_alpn_protos(context.get(), http, sizeof http - 1);
    else if (plan.workload == Workload::grpc)
      SSL_CTX_set_alpn_protos(context.get(), http2, sizeof http2 - 1);
    SSL_CTX_set_session_cache_mode(
        context.get(), plan.tls.reuse ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL : SSL_SESS_CACHE_OFF);
    SSL_CTX_set_app_data(context.get(), this);
    SSL_CTX_sess_set_new_cb(context.get(), keep_session);
    return context;
  }

  /// The server asks for a certificate of the client.
  static int note_request(SSL* ssl, void*) {
    auto* const stream = static_cast<Stream*>(SSL_get_app_data(ssl));
    stream->own = SSL_get_certificate(ssl) == nullptr ? OwnCertificate::missing : OwnCertificate::sent;
    return 1;
  }

  static int keep_session(SSL* ssl, SSL_SESSION* session) {
    static_cast<TlsTransport*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))->session_.reset(session);
    return 1;
  }

  Ssl make_ssl() {
    Ssl ssl{SSL_new(context_.get())};
    if (!ssl) die("OpenSSL: " + tls::format_reason(ERR_peek_error()));
    BIO_up_ref(bio_.get());
    SSL_set_bio(ssl.get(), bio_.get(), bio_.get());
    if (!server_name_.empty()) SSL_set_tlsext_host_name(ssl.get(), server_name_.c_str());
    if (has_name_) {
      SSL_set1_host(ssl.get(), host_.c_str());
    } else {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host_.c_str());
    }
    // A copy: OpenSSL lets a session of TLS 1.3 be used once, and another connection may need it before the next is
    // here.
    if (const SavedSession copy{session_ ? SSL_SESSION_dup(session_.get()) : nullptr})
      SSL_set_session(ssl.get(), copy.get());
    SSL_set_connect_state(ssl.get());
    return ssl;
  }

  void on_connected(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    stream.ssl = make_ssl();
    stream.own = OwnCertificate::not_requested;
    SSL_set_app_data(stream.ssl.get(), &stream);
    stream.began = now_ns();
    std::string_view nothing;
    shake_hands(connection, nothing);
  }

  void on_connect_failed(std::uint32_t connection, ConnectFailure failure, int error) override {
    why_.clear();
    events_->on_connect_failed(connection, failure, error);
  }

  void on_received(std::uint32_t connection, std::string_view bytes, KernelStamp arrived) override {
    const std::uint32_t life = streams_[connection].life;
    if (!streams_[connection].open) shake_hands(connection, bytes);
    if (streams_[connection].life == life && streams_[connection].open) read(connection, bytes, arrived);
  }

  void on_writable(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    flush(connection);
    if (stream.unsent.empty() && std::exchange(stream.awaited, false)) events_->on_writable(connection);
  }

  void on_closed(std::uint32_t connection, CloseReason reason) override {
    const bool was_open = streams_[connection].open;
    // An end without a word is no reason to forget the session (a full handshake would follow).
    if (was_open) SSL_set_shutdown(streams_[connection].ssl.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    forget(connection);
    why_.clear();
    if (was_open)
      return events_->on_closed(connection, reason == CloseReason::closed_by_server ? CloseReason::cut_off : reason);
    why_ = "the connection ended in the TLS handshake";
    events_->on_connect_failed(connection, ConnectFailure::reset, ECONNRESET);
  }

  /// Goes on with the handshake as far as `bytes` allow, and takes them off.
  void shake_hands(std::uint32_t connection, std::string_view& bytes) {
    Stream& stream = streams_[connection];
    SSL* const ssl = stream.ssl.get();
    ERR_clear_error();
    pipe_.input = bytes;
    const int result = SSL_do_handshake(ssl);
    bytes = std::exchange(pipe_.input, {});
    const bool waits = result != 1 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ;
    const std::string wrong = result == 1 || waits ? "" : handshake_words(ssl, host_, stream.own);
    flush(connection);  // also what tells the server why it failed
    if (result == 1) {
      stream.open = true;
      handshakes_.times.record(now_ns() - stream.began);
      handshakes_.resumed += SSL_session_reused(ssl) == 1;
      if (handshakes_.protocol.empty()) {
        handshakes_.protocol = SSL_get_version(ssl);
        handshakes_.cipher = SSL_get_cipher_name(ssl);
      }
      events_->on_connected(connection);
    } else if (!waits) {
      let_go(connection);
      why_ = wrong;
      events_->on_connect_failed(connection, ConnectFailure::other, EPROTO);
    }
  }

  /// Hands on what `bytes` hold; several records together, as long as there is room.
  void read(std::uint32_t connection, std::string_view bytes, KernelStamp arrived) {
    SSL* const ssl = streams_[connection].ssl.get();
    const std::uint32_t life = streams_[connection].life;
    for (std::size_t filled = 0;;) {
      ERR_clear_error();
      pipe_.input = bytes;
      const int taken = SSL_read(ssl, plain_.data() + filled, static_cast<int>(plain_.size() - filled));
      bytes = std::exchange(pipe_.input, {});
      filled += static_cast<std::size_t>(std::max(taken, 0));
      if (taken > 0 && filled < plain_.size()) continue;
      const int error = SSL_get_error(ssl, taken);
      const unsigned long reason = ERR_peek_error();
      flush(connection);
      if (filled > 0) events_->on_received(connection, {plain_.data(), std::exchange(filled, 0)}, arrived);
      if (streams_[connection].life != life) return;  // it was closed meanwhile, and perhaps reconnected
      if (taken > 0) continue;
      if (error == SSL_ERROR_ZERO_RETURN) return close_and_tell(connection, CloseReason::closed_by_server, "");
      if (error != SSL_ERROR_WANT_READ)
        return close_and_tell(connection, CloseReason::unreadable, stream_words(reason, streams_[connection].own));
      if (streams_[connection].unsent.size() > longest_unsent)
        return close_and_tell(connection, CloseReason::unreadable, "the server asks and does not read the answer");
      return;
    }
  }

  /// Sends what has been encrypted, as far as it goes.
  void flush(std::uint32_t connection) {
    throw_without_memory();
    std::string& unsent = streams_[connection].unsent;
    if (unsent.empty() && pipe_.output.empty()) return;
    if (unsent.empty()) {
      const std::size_t taken = below_->send(connection, pipe_.output);
      if (taken < pipe_.output.size()) unsent.assign(pipe_.output, taken);
    } else {
      unsent.append(pipe_.output);
      unsent.erase(0, below_->send(connection, unsent));
    }
    pipe_.output.clear();
    if (pipe_.output.capacity() > 4 * piece) pipe_.output.shrink_to_fit();
  }

  /// In the place of the pipe, which cannot do so through OpenSSL.
  void throw_without_memory() const {
    if (pipe_.is_out_of_memory) throw std::bad_alloc{};
  }

  void close_and_tell(std::uint32_t connection, CloseReason reason, const std::string& why) {
    close(connection);
    why_ = why;
    events_->on_closed(connection, reason);
  }

  void forget(std::uint32_t connection) override {
    Stream& stream = streams_[connection];
    stream.ssl.reset();
    stream.open = stream.awaited = false;
    ++stream.life;
    stream.unsent.clear();
  }

  struct Broken {
    std::uint32_t connection;
    std::uint32_t life;
  };

  const std::string host_;
  const bool has_name_;
  const std::string server_name_;  // SNI (RFC 6066, 3)
  Pipe pipe_;
  Method method_;
  Bio bio_;  // one for all connections
  SavedSession session_;
  Context context_;
  std::vector<Stream> streams_;
  std::vector<Broken> broken_;  // connections whose end is to be reported
  Handshakes handshakes_;
  std::array<char, 64 << 10> plain_{};
};

}  // namespace

std::unique_ptr<Transport> make_tls_transport(const LoadPlan& plan, const ThreadShare& share,
                                              std::unique_ptr<Transport> below) {
  return std::make_unique<TlsTransport>(plan, share, std::move(below));
}

}  // namespace netdyno::load
