#include <gtest/gtest.h>

#include "loadgen/plan/built_with.hpp"

namespace netdyno::load {
namespace {

TEST(BuiltWith, ABuildWithAllRefusesNothing) {
  LoadPlan plan;
  plan.url.transport = "zmq+tcp";
  plan.workload = Workload::rpc;
  EXPECT_EQ(not_built(plan, {.zmq = true, .protobuf = true, .http2 = true}), "");
  plan.workload = Workload::grpc;
  EXPECT_EQ(not_built(plan, {.zmq = true, .protobuf = true, .http2 = true}), "");
}

TEST(BuiltWith, WithoutLibrariesTheRestIsThere) {
  LoadPlan plan;
  plan.url.transport = "tcp";
  EXPECT_EQ(not_built(plan, {}), "");
}

TEST(BuiltWith, WhatIsMissingIsNamedWithTheWayToGetIt) {
  LoadPlan plan;
  plan.url.transport = "zmq+tcp";
  EXPECT_TRUE(not_built(plan, {.protobuf = true}).starts_with("zmq+tcp:// is not in this build"));
  EXPECT_NE(not_built(plan, {.protobuf = true}).find("libzmq3-dev"), std::string::npos);
  plan.url.transport = "tcp";
  plan.workload = Workload::rpc;
  EXPECT_TRUE(not_built(plan, {.zmq = true}).starts_with("--workload rpc is not in this build"));
  EXPECT_NE(not_built(plan, {.zmq = true}).find("libprotobuf-dev"), std::string::npos);
  plan.workload = Workload::grpc;
  EXPECT_NE(not_built(plan, {.protobuf = true}).find("libnghttp2-dev"), std::string::npos);
}

}  // namespace
}  // namespace netdyno::load
