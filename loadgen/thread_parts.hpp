#pragma once

#include "lib/measure/clock.hpp"
#include "lib/measure/recorder.hpp"
#include "loadgen/connect/connecting.hpp"
#include "loadgen/connect/loop_clock.hpp"
#include "loadgen/connect/message_writer.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/match/matching.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// Where the loop of a thread is. Owning thread only.
struct LoopState {
  LoopClock clock;
  Nanos now = 0;  // read at every event
  Window window;  // of the slice that is measured
};

/// What a thread has (Worker), for the classes that do its work: Sending, Receiving, GivingUp and Peer. All of it must
/// live as long as they do.
struct ThreadParts {
  const LoadPlan& plan;
  Control& control;
  Clients& clients;
  Transport& transport;
  MessageWriter& writer;
  Connecting& connecting;
  Matching& matching;
  Recorder& recorder;
  LoopState& loop;
};

}  // namespace netdyno::load
