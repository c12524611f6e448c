#include "lib/session/sessions.hpp"

namespace netdyno {
namespace {

/// Bytes as they come. What one read brought counts as one request: an echo server sees no messages.
class EchoSession final : public Session {
 public:
  using Session::Session;

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    counters().add_request();
    effects.reply({}, bytes);
  }
  void on_end(Effects&) override {}
};

}  // namespace

std::unique_ptr<Session> make_echo_session(Counters& counters) { return std::make_unique<EchoSession>(counters); }

}  // namespace netdyno
