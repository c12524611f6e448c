#include "lib/protocol/framing.hpp"
#include "lib/session/sessions.hpp"

namespace netdyno {
namespace {

/// Each message becomes one immutable frame that all recipients share.
class ChatSession final : public Session {
 public:
  ChatSession(std::size_t max_frame, Counters& counters) : Session(counters), frames_(max_frame) {}

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    const bool good = frames_.receive(bytes, [&](std::string_view body) {
      counters().add_request();
      effects.broadcast(make_frame(body));
      return true;
    });
    if (!good) protocol_error(effects);
  }

  static SharedFrame make_frame(std::string_view body) {
    const auto header = encode_frame_header(body.size());
    std::string bytes;
    bytes.reserve(header.size() + body.size());
    bytes.append(header.data(), header.size()).append(body);
    return std::make_shared<const Frame>(Frame{std::move(bytes), header.size()});
  }

  void on_end(Effects& effects) override {
    if (!frames_.at_boundary()) protocol_error(effects);
  }

  FrameReader frames_;
};

}  // namespace

std::unique_ptr<Session> make_chat_session(const SessionOptions& options, Counters& counters) {
  return std::make_unique<ChatSession>(options.max_frame, counters);
}

}  // namespace netdyno
