#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>

/// OpenSSL's objects, and the way by which bytes get into and out of it.
namespace netdyno::tls {

template <auto release>
struct Release {
  template <typename Object>
  void operator()(Object* object) const {
    release(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Release<SSL_CTX_free>>;
using SavedSession = std::unique_ptr<SSL_SESSION, Release<SSL_SESSION_free>>;
using Ssl = std::unique_ptr<SSL, Release<SSL_free>>;
using Bio = std::unique_ptr<BIO, Release<BIO_free>>;
using Method = std::unique_ptr<BIO_METHOD, Release<BIO_meth_free>>;

/// Where OpenSSL reads and writes: what one connection has brought, and what is to go to it. As long as a call into
/// OpenSSL takes; so one does for all connections of a thread, and nothing is copied into buffers of its own.
struct Pipe {
  std::string_view input;
  std::string output;
  bool is_out_of_memory = false;  // so that a call failed

  static int read(BIO* bio, char* into, int size) {
    BIO_clear_retry_flags(bio);
    auto& pipe = *static_cast<Pipe*>(BIO_get_data(bio));
    const std::size_t taken = pipe.input.copy(into, static_cast<std::size_t>(size));
    pipe.input.remove_prefix(taken);
    if (taken > 0) return static_cast<int>(taken);
    BIO_set_retry_read(bio);
    return -1;
  }
  /// No exception leaves it, as what is above it is C.
  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    auto& pipe = *static_cast<Pipe*>(BIO_get_data(bio));
    try {
      pipe.output.append(bytes, static_cast<std::size_t>(size));
      return size;
    } catch (const std::bad_alloc&) {
      pipe.is_out_of_memory = true;
      return -1;
    }
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
};

inline Method make_method() {
  Method method{BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "netdyno")};
  BIO_meth_set_read(method.get(), Pipe::read);
  BIO_meth_set_write(method.get(), Pipe::write);
  BIO_meth_set_ctrl(method.get(), Pipe::control);
  return method;
}

/// Never asks for the password of a key, as OpenSSL would at the terminal: a program that a script starts would wait
/// there for ever.
inline int give_no_password(char*, int, int, void* is_encrypted) {
  *static_cast<bool*>(is_encrypted) = true;
  return -1;
}

/// What came of a private key; the queue of errors has more of one that is unreadable.
enum class KeyState { taken, unreadable, encrypted, mismatched };

/// Takes the key in a file, in PEM, of the certificate that the context has. A key of another type than that is one of
/// a second certificate for OpenSSL, until it is asked whether this is there (SSL_CTX_use_certificate(3)).
inline KeyState use_key(SSL_CTX* context, const std::string& file) {
  bool is_encrypted = false;
  SSL_CTX_set_default_passwd_cb(context, give_no_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, &is_encrypted);
  ERR_clear_error();
  const bool is_taken = SSL_CTX_use_PrivateKey_file(context, file.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  if (is_taken) return SSL_CTX_check_private_key(context) == 1 ? KeyState::taken : KeyState::mismatched;
  if (is_encrypted) return KeyState::encrypted;
  const unsigned long error = ERR_peek_last_error();
  const bool differs = ERR_GET_LIB(error) == ERR_LIB_X509 && ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH;
  return differs ? KeyState::mismatched : KeyState::unreadable;
}

/// OpenSSL's text for an error of its queue.
inline std::string format_reason(unsigned long error) {
  const char* reason = ERR_reason_error_string(error);
  if (reason != nullptr) return reason;
  char number[2 * sizeof error + 1];
  std::snprintf(number, sizeof number, "%lx", error);
  return std::string{"error "} + number;
}

}  // namespace netdyno::tls
