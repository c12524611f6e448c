#include "grpc.pb.h"
#include "loadgen/codec/codecs.hpp"
#include "loadgen/codec/grpc_message.hpp"
#include "loadgen/codec/service_times.hpp"

namespace netdyno::load {
namespace {

/// Puts the prefix before a message that is not compressed.
void append_prefix(std::size_t size, std::string& out) {
  const auto length = encode_frame_header(size);
  out.push_back('\0');
  out.append(length.data(), length.size());
}

class GrpcDecoder final : public Decoder {
 public:
  GrpcDecoder(std::size_t size, unary::Reply& scratch) : size_(size), scratch_(scratch) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    if (!pending_.empty()) bytes = pending_.append(bytes);
    std::size_t taken = 0;
    for (std::size_t whole = 0; (whole = find_grpc_size(bytes.substr(taken))) > 0; taken += whole) {
      if (whole > size_ + most_beside_the_body) return false;
      if (bytes.size() - taken < whole) break;
      check(bytes.substr(taken, whole), sink);
    }
    if (pending_.empty())
      pending_ = bytes.substr(taken);
    else
      pending_.erase(0, taken);
    return true;
  }
  bool at_boundary() const override { return pending_.empty(); }

 private:
  static constexpr std::size_t most_beside_the_body = 64;

  void check(std::string_view whole, ReplySink& sink) const {
    const auto message = whole.substr(grpc_prefix_size);
    if (whole.front() != '\0' || !scratch_.ParseFromArray(message.data(), static_cast<int>(message.size())))
      return sink.on_corrupt();
    const std::string& body = scratch_.body();
    if (body.size() != size_ || body.find_first_not_of('x', min_stamp_size) != std::string::npos)
      return sink.on_corrupt();
    check_stamp(std::string_view{body}.substr(0, min_stamp_size), min_stamp_size, whole.size(), sink);
  }

  std::size_t size_;
  unary::Reply& scratch_;
  std::string pending_;
};

class GrpcCodec final : public Codec {
 public:
  explicit GrpcCodec(const LoadPlan& plan) : size_(plan.size), times_(plan), kind_(plan.service_kind) {
    request_.set_size(static_cast<std::uint32_t>(size_));
    scratch_.mutable_body()->resize(size_);
    reply_size_ = grpc_prefix_size + scratch_.ByteSizeLong();
  }

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    request_.mutable_stamp()->clear();
    append_stamp(stamp, min_stamp_size, *request_.mutable_stamp());
    const auto service_us = static_cast<std::uint32_t>(times_.find_us(stamp));
    kind_ == ServiceKind::cpu ? request_.set_cpu_us(service_us) : request_.set_wait_us(service_us);
    append_prefix(request_.ByteSizeLong(), out);
    request_.AppendToString(&out);
    return 0;
  }

  std::optional<std::size_t> reply_size(const Stamp&) const override { return reply_size_; }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<GrpcDecoder>(size_, scratch_); }

 private:
  std::size_t size_;
  ServiceTimes times_;
  ServiceKind kind_;
  std::size_t reply_size_ = 0;
  // Reused, as in rpc.cpp.
  unary::Request request_;
  mutable unary::Reply scratch_;
};

}  // namespace

std::unique_ptr<Codec> make_grpc_codec(const LoadPlan& plan) { return std::make_unique<GrpcCodec>(plan); }

}  // namespace netdyno::load
