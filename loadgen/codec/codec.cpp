#include "loadgen/codec/codec.hpp"

#include <cstdlib>

#include "loadgen/codec/codecs.hpp"

namespace netdyno::load {

void check_stamp(std::string_view text, std::size_t stamp_size, std::size_t reply_size, ReplySink& sink) {
  const auto stamp = text.size() == stamp_size ? read_stamp(text) : std::nullopt;
  if (stamp) {
    sink.on_reply(*stamp, reply_size);
  } else {
    sink.on_corrupt();
  }
}

std::unique_ptr<Codec> make_codec(const LoadPlan& plan) {
  if (plan.http) return make_foreign_http_codec(plan);
  if (plan.exchange) return make_exchange_codec(plan);
  if (plan.websocket) return make_websocket_codec(plan);
  switch (plan.workload) {
    case Workload::echo:
    case Workload::lines:
      return make_line_codec(plan);
    case Workload::rpc:
#if defined(NETDYNO_WITH_PROTOBUF)
      return make_rpc_codec(plan);
#else
      break;  // refused with the command line (loadgen/plan/built_with.hpp)
#endif
    case Workload::chat:
      return make_chat_codec(plan);
    case Workload::http:
      return make_http_codec(plan);
    case Workload::web:
      return make_web_codec(plan);
    case Workload::grpc:
#if defined(NETDYNO_WITH_HTTP2)
      return make_grpc_codec(plan);
#else
      break;  // as above
#endif
  }
  std::abort();  // the enumeration is closed; the plan is parsed once
}

}  // namespace netdyno::load
