#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/session/session.hpp"

namespace netdyno {

/// The TLS of one connection, without any I/O. One thread at a time may call it; what it returns is valid until that
/// thread's next call of any of them. Each call may throw std::bad_alloc, after which the stream is of no use.
class TlsStream {
 public:
  enum class StreamState { open, ended, broken };
  struct Decrypted {
    StreamState state;  // ended: by close_notify; broken: what came is no TLS, or refuses ours
    std::string_view plain;
    std::string_view answer;  // of the protocol itself: a handshake, an alert
  };

  virtual ~TlsStream() = default;
  /// Takes bytes off the front of `bytes`: those of one record with plain text at most, for a stream that turns out
  /// broken behind it can encrypt no reply to it any more. Open and without plain text: all, and more are to come.
  virtual Decrypted decrypt(std::string_view& bytes) = 0;
  /// Returns nothing where the stream is broken.
  virtual std::string_view encrypt(std::string_view plain) = 0;
  /// Returns close_notify (RFC 8446, 6.1); nothing before the end of the handshake.
  virtual std::string_view close() = 0;
};

/// What the connections of a server have in common: its certificate and key. Any thread may call it. It must outlive
/// its streams.
class TlsLayer {
 public:
  virtual ~TlsLayer() = default;
  virtual std::unique_ptr<TlsStream> make_stream() = 0;
};

/// The function that the library of lib/tls/ has under this name. Null where the file has no certificate and key in
/// PEM; `why` then says so.
using MakeTlsLayer = TlsLayer*(const std::string& file, std::string& why);
inline constexpr const char* make_tls_layer_name = "netdyno_make_tls_layer";

/// Loads that library, which is not linked: OpenSSL would take memory of each server that has no use for it. Ends the
/// program where that, or the certificate, cannot be had.
std::shared_ptr<TlsLayer> load_tls_layer(const std::string& file);

/// A session whose bytes are encrypted on both ways; `plain` knows nothing of it. It asks for no broadcast.
std::unique_ptr<Session> make_tls_session(std::unique_ptr<Session> plain, const SessionOptions& options,
                                          Counters& counters);

}  // namespace netdyno
