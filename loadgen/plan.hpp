#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cli/url.hpp"
#include "lib/measure/clock.hpp"
#include "lib/protocol/workload.hpp"

namespace netdyno {
class CommandLine;
}

namespace netdyno::load {

enum class Arrivals { closed, constant, poisson };

/// Whether a message comes whole over this transport or not at all: it has no streams, and may lose what it carries
/// (protocol/WIRE.md, "Transports that carry messages").
bool carries_messages(const Url& url);

/// What the generator is asked to do. Parsed once, never changed.
struct LoadPlan {
  Url url;
  Workload workload = Workload::echo;
  Arrivals arrivals = Arrivals::closed;
  std::uint32_t connections = 1;
  std::uint32_t depth = 1;        // closed loop: messages in flight per connection
  Nanos round = 0;                // closed loop: messages leave together, at multiples of this; 0: at once
  std::optional<double> rate_hz;  // open loop: total over all connections
  std::size_t size = 31;          // of a message, as protocol/WIRE.md counts it per workload
  Nanos duration = 10 * one_second;
  Nanos warmup = one_second;
  Nanos timeout = 10 * one_second;
  Nanos look_every = 0;  // closed loop: the shortest time from one look at the sockets to the next; 0: none
  Nanos linger = 0;      // how long connections stay open after the last answer
  std::uint32_t requests_per_connection = 0;  // closed when so many are answered, made anew for the next; 0: never
  std::optional<double> connect_rate_hz;      // none: all at once
  Nanos connect_timeout = 5 * one_second;
  std::uint32_t threads = 1;
  std::vector<std::string> source_ips;  // connections take them in turn; empty: the kernel chooses
  std::uint64_t seed = 1;
  Audience audience = Audience::others;  // chat: what the server does
  std::uint32_t slow_readers = 0;        // chat: of the connections, the last, which read little and say nothing
  std::int32_t service_us = 0;           // rpc: the `workload` field of the requests
  bool nodelay = true;
  std::size_t send_buffer = 0;  // SO_SNDBUF; 0: as the system has it
  WriteMode write_mode = WriteMode::gathered;
  std::string json_file;  // empty: none; "-": stdout
  std::string hdr_file;   // empty: none
  int events_fd = -1;     // -1: none
  /// Also outside a private network namespace (lib/net/multicast.hpp).
  bool multicast_anywhere = false;
};

/// Ends the program on `--help` (exit 0) and on what cannot be meant (exit 2, one line on stderr).
LoadPlan parse_load_plan(int argc, const char* const* argv);

/// What a program takes that stands in the generator's place, under the same names and with the same meaning.
struct PlanSubset {
  std::string description;
  LoadPlan defaults;
  std::set<std::string> options;  // long names; the other options of the generator are unknown to it
  std::set<Workload> workloads;   // at least one
  std::set<std::string> transports{"tcp"};
  std::function<void(CommandLine&)> add_own;  // options that the generator does not have
};
LoadPlan parse_load_plan(int argc, const char* const* argv, const PlanSubset& subset);

std::string_view to_string(Arrivals arrivals);

}  // namespace netdyno::load
