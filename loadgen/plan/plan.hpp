#pragma once

#include <algorithm>
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
#include "loadgen/plan/assertion.hpp"
#include "loadgen/plan/foreign.hpp"
#include "loadgen/plan/layers.hpp"
#include "loadgen/plan/pace.hpp"

namespace netdyno {
class CommandLine;
}

namespace netdyno::load {

enum class Arrivals { closed, constant, poisson };

/// Whether a thread that waits for the moment of a message wakes before it and keeps polling: not at all, as long as it
/// has learned that its timers are late, or as long as they were before the load.
enum class Spin { off, automatic, on };

/// How the messages that are due leave: in the order of the schedule (those that follow each other on one connection
/// together), or connection by connection, each with all that is due on it.
enum class WriteDue { separate, joined };

/// Whether a message comes whole over this transport or not at all: it has no streams, and may lose what it carries
/// (protocol/WIRE.md, "Transports that carry messages").
bool carries_messages(const Url& url);

/// The part of a load that this program makes, where several programs make it together: `index` of `count`.
struct Share {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

/// The requested load. Parsed once, never changed.
struct LoadPlan {
  Url url;
  Workload workload = Workload::echo;
  std::optional<HttpRequest> http;   // instead: to a server that need not be ours, http://...
  std::optional<Exchange> exchange;  // or these bytes
  TlsOptions tls;
  std::optional<WebSocketRequest> websocket;
  Arrivals arrivals = Arrivals::closed;
  std::uint32_t connections = 1;
  std::uint32_t depth = 1;         // closed loop, or where `flight_is_limited`: messages in flight per connection
  bool flight_is_limited = false;  // open loop: what is due waits for a place; a foreign server is always asked so
  Nanos round = 0;                 // closed loop: messages leave together, at multiples of this; 0: at once
  std::optional<double> rate_hz;   // open loop: total over all connections; the mean of the steps
  std::vector<RateStep> steps;     // open loop, over all connections: as long as the window; empty: one rate
  std::uint64_t count = 0;         // messages in the window, which ends when they have their answers; 0: as time allows
  std::size_t size = 31;           // of a message, as protocol/WIRE.md counts it per workload
  Nanos duration = 10 * one_second;
  Nanos warmup = one_second;
  Nanos timeout = 10 * one_second;
  Nanos poll_every = 0;  // the shortest time from one poll of the sockets, and the schedule, to the next; 0: none
  WriteDue write_due = WriteDue::separate;
  Spin spin = Spin::automatic;
  Nanos linger = 0;                 // how long connections stay open after the last answer
  std::uint32_t messages_each = 0;  // chat: each client writes so many, reads nothing and leaves; 0: no such load
  std::size_t chunks = 0;           // web: each reply is a stream of so many chunks; 0: it is no stream
  Nanos every = 5'000'000;          // with either: from a client's write to its next, or from a chunk to the next
  std::uint32_t requests_per_connection = 0;  // closed when so many are answered, then reconnected; 0: never
  bool reconnects = false;                    // http: also where the server closes after a reply (RFC 9112, 9.6)
  std::optional<double> connect_rate_hz;      // none: all at once
  bool connects_when_due = false;             // open loop: each connection is opened for its first message
  Nanos connect_timeout = 5 * one_second;
  std::uint32_t threads = 1;
  std::vector<std::string> source_ips;  // connections take them in turn; empty: the kernel chooses
  Share share;                          // of the connections and rates here, which are those of all programs together
  bool await_go = false;                // the load begins at the moment that a line on stdin names
  bool turns = false;                   // the load is made slice by slice, each at a moment that a line on stdin names
  bool witness = false;                 // tells of pauses in each slice
  std::uint64_t seed = 1;
  Audience audience = Audience::others;  // chat: what the server does
  std::uint32_t busy_connections = 0;    // not chat: of the connections, the first, which send; 0: all
  std::uint32_t slow_readers = 0;        // chat: of the connections, the last, which read little and say nothing
  bool speaks_at_once = false;           // chat, closed loop: clients send while others still connect
  std::int32_t service_us = 0;           // rpc, web, grpc: the time that a request asks for
  ServiceKind service_kind = ServiceKind::wait;  // web, grpc: how it is spent
  double slow_requests = 0;                      // this share of them, by seed and stamp, has the next one instead
  std::int32_t slow_request_us = 0;
  bool nodelay = true;
  std::size_t send_buffer = 0;  // SO_SNDBUF; 0: as the system has it
  WriteMode write_mode = WriteMode::gathered;
  bool repeatable = false;  // foreign servers: the user says that a message may be carried out twice
  std::string json_file;    // empty: none; "-": stdout
  std::string hdr_file;     // empty: none
  std::string csv_file;     // these too
  std::string prometheus_file;
  std::string percentiles_file;
  std::vector<Assertion> assertions;
  std::string unix_socket;       // connect to this file instead of a host; empty: to the host
  int events_fd = -1;            // -1: none
  bool is_only_checked = false;  // no load is made
  /// Also outside a private network namespace (lib/net/multicast.hpp).
  bool multicast_anywhere = false;

  /// How long the last answers are waited for after the window: what a burst left in a queue comes late, and is not
  /// lost.
  Nanos last_patience() const { return steps.empty() ? timeout : std::max(timeout, duration); }
  /// How many of the connections send. They are the first.
  std::uint32_t speakers() const { return busy_connections > 0 ? busy_connections : connections - slow_readers; }
  /// Whether the server is not ours: its replies bear no stamp and come in order, and it may close its connections.
  bool is_foreign() const { return http || exchange; }
  /// Whether a reply may come before that to an earlier request of its connection: each has a stream of its own.
  bool may_overtake() const { return workload == Workload::grpc; }
  /// Whether its clients write and never read (loadgen/write_only.hpp).
  bool is_write_only() const { return messages_each > 0; }
  /// Whether a client may have one connection after the other.
  bool may_reconnect() const { return requests_per_connection > 0 || reconnects || is_foreign(); }
  /// Whether a message that was sent may be sent again where its connection ended before the reply: the server may have
  /// carried it out (RFC 9110, 9.2.2). The effect of bytes from the command line is unknown.
  bool may_be_sent_again() const { return repeatable || reconnects || (http && is_idempotent(http->method)); }
  /// Whether response times end with the kernel's stamps of the replies, where it gives any
  /// (docs/adr/kernel-clock.md).
  bool ends_times_with_stamps() const;
  /// Whether its connections hear messages of other programs too.
  bool is_part_of_a_room() const { return workload == Workload::chat && share.count > 1; }
};

/// Ends the program on `--help` (exit 0) and on what cannot be meant (exit 2, one line on stderr).
LoadPlan parse_load_plan(int argc, const char* const* argv);

/// The options of a program that stands in the generator's place, under the same names and with the same meaning.
struct PlanSubset {
  std::string description;
  LoadPlan defaults;
  std::set<std::string> options;  // long names; the other options of the generator are unknown to it
  std::set<Workload> workloads;   // at least one
  std::set<std::string> transports{"tcp"};
  std::function<void(CommandLine&)> add_own;  // options that the generator does not have
};
LoadPlan parse_load_plan(int argc, const char* const* argv, const PlanSubset& subset);

/// This program's part of the plan: all of it, unless the plan is shared.
LoadPlan own_part(LoadPlan plan);

std::string_view to_string(Arrivals arrivals);
std::string_view to_string(Spin spin);
std::string_view to_string(WriteDue write_due);
/// Where the load goes, as a person would write it.
std::string address_of(const LoadPlan& plan);

}  // namespace netdyno::load
