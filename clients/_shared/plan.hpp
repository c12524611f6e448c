#pragma once

#include "clients/_shared/stages.hpp"
#include "loadgen/plan/plan.hpp"

namespace netdyno::client {

using load::Nanos;

/// The task of a client contestant (protocol/client.md). Parsed once, never changed.
struct ClientPlan {
  load::LoadPlan load;  // closed loop, one message in flight on each connection
  Nanos retry_delay;    // from a failure to the next attempt
};

/// The same for a client library.
Options library_options(const ClientPlan& plan);

/// Ends the program on `--help` (exit 0) and on what cannot be meant (exit 2, one line on stderr).
ClientPlan parse_client_plan(int argc, const char* const* argv);

}  // namespace netdyno::client
