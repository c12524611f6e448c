#include "lib/session/tls.hpp"

#include <utility>

#include "lib/cli/die.hpp"
#include "lib/session/library.hpp"

namespace netdyno {
namespace {

class TlsSession final : public Session {
 public:
  TlsSession(std::unique_ptr<Session> plain, const SessionOptions& options, Counters& counters)
      : Session(counters), plain_(std::move(plain)), layer_(options.tls), plain_effects_(options.write_mode) {}

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    if (!stream_) stream_ = layer_->make_stream();
    while (!closed() && !bytes.empty()) serve_record(bytes, effects);
  }

  /// Takes a record off the front of `bytes`, and requests the replies to it.
  void serve_record(std::string_view& bytes, Effects& effects) {
    const TlsStream::Decrypted decrypted = stream_->decrypt(bytes);
    effects.reply({}, decrypted.answer);
    if (!decrypted.plain.empty()) {
      plain_->take(decrypted.plain, plain_effects_);
      carry_over(effects);
    }
    if (closed() || decrypted.state == TlsStream::StreamState::open) return;
    decrypted.state == TlsStream::StreamState::ended ? on_end(effects) : protocol_error(effects);
  }

  void on_end(Effects& effects) override {
    plain_->take_end(plain_effects_);
    carry_over(effects);
  }

  /// Appends what the plain session requests, its writes encrypted.
  void carry_over(Effects& effects) {
    for (const Effect& effect : plain_effects_) {
      switch (effect.kind) {
        case Effect::Kind::write:
          effects.reply({}, stream_->encrypt(plain_effects_.bytes(effect)));
          break;
        case Effect::Kind::wait:
          effects.wait(effect);
          break;
        case Effect::Kind::burn:
          effects.serve(ServiceKind::cpu, effect.duration);
          break;
        case Effect::Kind::broadcast:
          die("a broadcast over TLS");
        case Effect::Kind::close:
          if (stream_) effects.reply({}, stream_->close());
          close(effects);
          break;
      }
    }
    plain_effects_.clear();
  }

  std::unique_ptr<Session> plain_;
  std::shared_ptr<TlsLayer> layer_;    // outlives its streams
  std::unique_ptr<TlsStream> stream_;  // from the first byte on, where lack of memory closes this client alone
  Effects plain_effects_;
};

}  // namespace

std::shared_ptr<TlsLayer> load_tls_layer(const std::string& file) {
  auto* const make = reinterpret_cast<MakeTlsLayer*>(
      load_function("tls/netdyno-tls.so", make_tls_layer_name, "--tls",
                    "install libssl-dev and openssl, and build the target netdyno-tls"));
  std::string why;
  TlsLayer* const layer = make(file, why);
  if (layer == nullptr) die("--tls: " + why);
  return std::shared_ptr<TlsLayer>{layer};
}

std::unique_ptr<Session> make_tls_session(std::unique_ptr<Session> plain, const SessionOptions& options,
                                          Counters& counters) {
  return std::make_unique<TlsSession>(std::move(plain), options, counters);
}

}  // namespace netdyno
