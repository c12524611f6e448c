// TLS as a library of its own, which servers load only if they are to speak it (lib/session/tls.hpp).
#include "lib/session/tls.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/tls/openssl.hpp"

namespace netdyno::tls {
namespace {

constexpr std::size_t most_at_once = 1 << 20;  // bytes for one SSL_write, which takes an int

/// The buffers of a thread: what a call returns stays there until the next.
struct Buffers {
  Pipe pipe;
  std::vector<char> plain;
};

Buffers& buffers() {
  thread_local Buffers of_thread;
  return of_thread;
}

class OpenSslStream final : public TlsStream {
 public:
  OpenSslStream(SSL_CTX* context, BIO_METHOD* method) : ssl_(SSL_new(context)) {
    Bio bio{BIO_new(method)};
    if (!ssl_ || !bio) throw std::bad_alloc{};
    bio_ = bio.release();
    BIO_set_init(bio_, 1);
    SSL_set_bio(ssl_.get(), bio_, bio_);  // which owns it from here on
    SSL_set_accept_state(ssl_.get());
  }

  Decrypted decrypt(std::string_view& bytes) override {
    Pipe& pipe = enter(bytes);
    std::vector<char>& plain = buffers().plain;
    plain.resize(SSL3_RT_MAX_PLAIN_LENGTH);  // a whole record: none stays inside OpenSSL
    const int taken = SSL_read(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
    const StreamState state = taken > 0 ? StreamState::open : find_state(taken, pipe);
    bytes = std::exchange(pipe.input, {});
    return {state, {plain.data(), static_cast<std::size_t>(std::max(taken, 0))}, pipe.output};
  }

  std::string_view encrypt(std::string_view plain) override {
    Pipe& pipe = enter();
    while (!broken_ && !plain.empty()) {
      const std::string_view next = plain.substr(0, most_at_once);
      if (SSL_write(ssl_.get(), next.data(), static_cast<int>(next.size())) <= 0) throw std::bad_alloc{};
      plain.remove_prefix(next.size());
    }
    return pipe.output;
  }

  std::string_view close() override {
    Pipe& pipe = enter();
    const bool fails = SSL_is_init_finished(ssl_.get()) && SSL_shutdown(ssl_.get()) < 0;
    if (fails && is_out_of_memory(pipe)) throw std::bad_alloc{};
    return pipe.output;
  }

 private:
  /// Lets OpenSSL use this thread's pipe.
  Pipe& enter(std::string_view input = {}) {
    Pipe& pipe = buffers().pipe;
    pipe.input = input;  // and nothing of an earlier call, which may have thrown
    pipe.output.clear();
    pipe.is_out_of_memory = false;
    BIO_set_data(bio_, &pipe);
    ERR_clear_error();
    return pipe;
  }

  /// Where a call brought no plain text.
  StreamState find_state(int result, const Pipe& pipe) {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_ZERO_RETURN) return StreamState::ended;
    if (error == SSL_ERROR_WANT_READ && pipe.input.empty()) return StreamState::open;
    if (is_out_of_memory(pipe)) throw std::bad_alloc{};
    broken_ = true;
    return StreamState::broken;
  }

  /// Deep inside a handshake OpenSSL calls that an internal error at times, as it does what a peer can provoke.
  static bool is_out_of_memory(const Pipe& pipe) {
    if (pipe.is_out_of_memory) return true;
    while (const unsigned long error = ERR_get_error())
      if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) return true;
    return false;
  }

  Ssl ssl_;
  BIO* bio_ = nullptr;  // of ssl_
  bool broken_ = false;
};

class OpenSslLayer final : public TlsLayer {
 public:
  explicit OpenSslLayer(Context context) : context_(std::move(context)) {}
  std::unique_ptr<TlsStream> make_stream() override {
    return std::make_unique<OpenSslStream>(context_.get(), method_.get());
  }

 private:
  Method method_ = make_method();
  Context context_;
};

/// Returns why the file is of no use; nothing where the context has its certificate and key.
std::string use_certificate(SSL_CTX* context, const std::string& file) {
  const bool has_certificate = SSL_CTX_use_certificate_chain_file(context, file.c_str()) == 1;
  switch (has_certificate ? use_key(context, file) : KeyState::unreadable) {
    case KeyState::taken:
      return {};
    case KeyState::encrypted:
      return "the key in '" + file + "' is encrypted, and no server asks for its password";
    case KeyState::mismatched:
      return "the key in '" + file + "' is not that of the certificate there";
    case KeyState::unreadable:
      break;
  }
  return "'" + file + "' holds no certificate with its key in PEM (" + format_reason(ERR_peek_error()) + ")";
}

}  // namespace
}  // namespace netdyno::tls

extern "C" netdyno::TlsLayer* netdyno_make_tls_layer(const std::string& file, std::string& why) {
  using namespace netdyno::tls;
  // A detached thread may be on its way out when the program ends: what OpenSSL keeps for it is not to be freed under
  // it (OPENSSL_init_crypto(3)).
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ERR_clear_error();
  Context context{SSL_CTX_new(TLS_server_method())};
  why = context ? use_certificate(context.get(), file) : "OpenSSL: " + format_reason(ERR_peek_error());
  if (!why.empty()) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);  // not left to the machine's openssl.cnf
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);     // half the memory of a connection that waits
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // tickets hold all of a session
  return new OpenSslLayer{std::move(context)};
}
