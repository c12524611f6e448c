#include "lib/protocol/framing.hpp"
#include "lib/protocol/protobuf.hpp"
#include "lib/session/sessions.hpp"
#include "work.pb.h"

namespace netdyno {
namespace {

using std::chrono::microseconds;
constexpr std::int32_t max_workload_us = 10'000'000;

/// Source A's request and response: length-prefixed Protobuf, parsed and serialised, with an optional service time.
class RpcSession final : public Session {
 public:
  RpcSession(const SessionOptions& options, Counters& counters)
      : Session(counters),
        frames_(options.max_frame),
        service_time_(options.service_time),
        service_kind_(options.service_kind) {}

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    const bool good = frames_.receive(bytes, [&](std::string_view body) {
      serve(body, effects);
      return !closed();
    });
    if (!good && !closed()) protocol_error(effects);
  }

  void serve(std::string_view body, Effects& effects) {
    if (!parts_fit(body) || !message_.ParseFromArray(body.data(), static_cast<int>(body.size())) ||
        !message_.has_request())
      return protocol_error(effects);
    auto& request = *message_.mutable_request();
    if (request.workload() < 0 || request.workload() > max_workload_us) return protocol_error(effects);
    counters().add_request();
    effects.serve(service_kind_, service_time_ + microseconds{request.workload()});

    auto& response = *reply_.mutable_response();
    response.set_job_id(request.job_id());
    response.set_is_complete(true);
    response.mutable_stamp()->swap(*request.mutable_stamp());
    reply_.SerializeToString(&serialised_);
    const auto header = encode_frame_header(serialised_.size());
    effects.reply({header.data(), header.size()}, serialised_);
  }

  void on_end(Effects& effects) override {
    if (!frames_.at_boundary()) protocol_error(effects);
  }

  FrameReader frames_;
  std::chrono::nanoseconds service_time_;
  ServiceKind service_kind_;
  // Reused for their buffers; what Protobuf allocates per request (the message in the oneof) is the same in every
  // server.
  wire::WorkMessage message_;
  wire::WorkMessage reply_;
  std::string serialised_;
};

}  // namespace

std::unique_ptr<Session> make_rpc_session(const SessionOptions& options, Counters& counters) {
  return std::make_unique<RpcSession>(options, counters);
}

}  // namespace netdyno
