#pragma once

#include <string>

#include "loadgen/plan/plan.hpp"

namespace netdyno::load {

/// The libraries that a generator may have been built without: it then does without what they are for.
struct BuiltWith {
  bool zmq = false;
  bool protobuf = false;
  bool http2 = false;
};

/// This build.
BuiltWith built_with();

/// Names what of the plan a build does not have, and how to get it; empty when it has all.
std::string not_built(const LoadPlan& plan, const BuiltWith& build);

}  // namespace netdyno::load
