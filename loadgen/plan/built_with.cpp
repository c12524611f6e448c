#include "loadgen/plan/built_with.hpp"

namespace netdyno::load {

BuiltWith built_with() {
  BuiltWith build;
#if defined(NETDYNO_WITH_ZMQ)
  build.zmq = true;
#endif
#if defined(NETDYNO_WITH_PROTOBUF)
  build.protobuf = true;
#endif
#if defined(NETDYNO_WITH_HTTP2)
  build.http2 = true;
#endif
  return build;
}

std::string not_built(const LoadPlan& plan, const BuiltWith& build) {
  if (plan.url.transport == "zmq+tcp" && !build.zmq)
    return "zmq+tcp:// is not in this build, which was made without ZeroMQ: where libzmq3-dev and cppzmq-dev are "
           "installed, ./netdyno load has it";
  if (plan.workload == Workload::rpc && !build.protobuf)
    return "--workload rpc is not in this build, which was made without Protobuf: install libprotobuf-dev and "
           "protobuf-compiler, and build it again";
  if (plan.workload == Workload::grpc && !build.http2)
    return "--workload grpc is not in this build, which was made without HTTP/2 or Protobuf: where libnghttp2-dev, "
           "libprotobuf-dev and protobuf-compiler are installed, ./netdyno load has it";
  return {};
}

}  // namespace netdyno::load
