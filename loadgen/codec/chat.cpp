#include "lib/protocol/framing.hpp"
#include "loadgen/codec/codecs.hpp"

namespace netdyno::load {
namespace {

class ChatDecoder final : public Decoder {
 public:
  explicit ChatDecoder(std::size_t size) : size_(size), frames_(size) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    return frames_.receive(bytes, [&](std::string_view body) {
      check_stamp(body, size_, frame_header_size + body.size(), sink);
      return true;
    });
  }
  bool at_boundary() const override { return frames_.at_boundary(); }

 private:
  std::size_t size_;
  FrameReader frames_;  // no member sends a longer body than we do
};

class ChatCodec final : public Codec {
 public:
  explicit ChatCodec(std::size_t size) : size_(size) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    const auto header = encode_frame_header(size_);
    out.append(header.data(), header.size());
    append_stamp(stamp, size_, out);
    return header.size();
  }
  std::optional<std::size_t> reply_size(const Stamp&) const override { return frame_header_size + size_; }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<ChatDecoder>(size_); }

 private:
  std::size_t size_;
};

}  // namespace

std::unique_ptr<Codec> make_chat_codec(const LoadPlan& plan) { return std::make_unique<ChatCodec>(plan.size); }

}  // namespace netdyno::load
