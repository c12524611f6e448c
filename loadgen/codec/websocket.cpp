#include <random>
#include <utility>

#include "loadgen/codec/codecs.hpp"
#include "loadgen/codec/websocket_frame.hpp"

namespace netdyno::load {
namespace {

/// `echo` and `chat` over WebSocket: a message is a text, a stamp and a newline. Its frames end with the transport, so
/// what comes back is a stream of lines.
class WebSocketCodec final : public Codec {
 public:
  explicit WebSocketCodec(const LoadPlan& plan) : lines_(make_line_codec(plan)), random_(std::random_device{}()) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    const std::size_t begin = out.size();
    lines_->encode(stamp, out);
    frame_websocket(Opcode::text, static_cast<std::uint32_t>(random_()), out, begin);
    return 0;
  }
  std::optional<std::size_t> reply_size(const Stamp& stamp) const override { return lines_->reply_size(stamp); }
  std::unique_ptr<Decoder> make_decoder() const override { return lines_->make_decoder(); }

 private:
  std::unique_ptr<Codec> lines_;
  std::mt19937 random_;
};

}  // namespace

std::unique_ptr<Codec> make_websocket_codec(const LoadPlan& plan) { return std::make_unique<WebSocketCodec>(plan); }

}  // namespace netdyno::load
