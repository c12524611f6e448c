#include "lib/protocol/framing.hpp"
#include "lib/protocol/protobuf.hpp"
#include "loadgen/codec/codecs.hpp"
#include "loadgen/codec/service_times.hpp"
#include "work.pb.h"

namespace netdyno::load {
namespace {

std::uint32_t job_id(const Stamp& stamp) { return static_cast<std::uint32_t>(stamp.sequence); }

/// Room for the fields of a response beside the stamp.
constexpr std::size_t response_overhead = 64;

class RpcDecoder final : public Decoder {
 public:
  /// `scratch` is shared by the decoders of a thread, so that ten thousand connections need one message.
  RpcDecoder(std::size_t size, wire::WorkMessage& scratch)
      : size_(size), frames_(size + response_overhead), scratch_(scratch) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    return frames_.receive(bytes, [&](std::string_view body) {
      check(body, sink);
      return true;
    });
  }
  bool at_boundary() const override { return frames_.at_boundary(); }

 private:
  void check(std::string_view body, ReplySink& sink) const {
    if (!parts_fit(body) || !scratch_.ParseFromArray(body.data(), static_cast<int>(body.size())) ||
        !scratch_.has_response())
      return sink.on_corrupt();
    const auto& response = scratch_.response();
    const auto stamp = response.stamp().size() == size_ ? read_stamp(response.stamp()) : std::nullopt;
    if (!stamp || response.job_id() != job_id(*stamp) || !response.is_complete()) return sink.on_corrupt();
    sink.on_reply(*stamp, frame_header_size + body.size());
  }

  std::size_t size_;
  FrameReader frames_;
  wire::WorkMessage& scratch_;
};

class RpcCodec final : public Codec {
 public:
  explicit RpcCodec(const LoadPlan& plan) : size_(plan.size), times_(plan) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    auto& request = *request_.mutable_request();
    request.set_job_id(job_id(stamp));
    request.set_workload(times_.find_us(stamp));
    request.mutable_stamp()->clear();
    append_stamp(stamp, size_, *request.mutable_stamp());
    const auto header = encode_frame_header(request_.ByteSizeLong());
    out.append(header.data(), header.size());
    request_.AppendToString(&out);
    return header.size();
  }

  std::optional<std::size_t> reply_size(const Stamp& stamp) const override {
    auto& response = *reply_.mutable_response();
    response.set_job_id(job_id(stamp));
    response.set_is_complete(true);
    response.mutable_stamp()->resize(size_);
    return frame_header_size + reply_.ByteSizeLong();
  }

  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<RpcDecoder>(size_, scratch_); }

 private:
  std::size_t size_;
  ServiceTimes times_;
  // Reused, so that a message allocates nothing once the buffers have grown.
  wire::WorkMessage request_;
  mutable wire::WorkMessage reply_;
  mutable wire::WorkMessage scratch_;
};

}  // namespace

std::unique_ptr<Codec> make_rpc_codec(const LoadPlan& plan) { return std::make_unique<RpcCodec>(plan); }

}  // namespace netdyno::load
