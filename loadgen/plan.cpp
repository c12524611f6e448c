#include "loadgen/plan.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "lib/cli/option_values.hpp"
#include "lib/measure/stamp.hpp"
#include "lib/net/multicast.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"

namespace netdyno::load {
namespace {

constexpr const char* description =
    R"(netdyno-load: a load generator that measures honestly.

Every reply is verified; in an open loop the response time counts from the moment a message was meant to be sent.

Examples:
  netdyno-load tcp://127.0.0.1:7000 -c 100
      as fast as 100 connections go, one message in flight on each (closed loop)
  netdyno-load tcp://127.0.0.1:7000 -c 100 --rate 1000/conn --duration 30s
      1000 messages a second on each connection, on an absolute schedule (open loop)
  netdyno-load tcp://127.0.0.1:7000 --workload chat --audience all -c 50 --rate 500 --arrivals poisson
      500 messages a second in all, at random times, each broadcast to everybody
  netdyno-load tcp://127.0.0.1:7000 --workload http -c 20 --depth 4 --json result.json
      pipelined HTTP requests, four in flight on each connection; the figures go to a file as well
  netdyno-load udp://127.0.0.1:7000 --workload chat --audience all -c 100
      datagrams; what was lost, came twice or out of order stands beside the times
)";

constexpr std::size_t max_size = 64 << 20;
/// Messages, or connections, a second: fewer are none within a day of messages, and more are more than any machine
/// sends and the debt of a schedule has memory for.
constexpr double least_rate = 1e-3;
constexpr double most_rate = 1e7;
constexpr std::chrono::hours longest_time{24};
constexpr std::chrono::hours longest_ramp{1};
const std::set<std::string> transports{"tcp", "udp", "multicast", "zmq+tcp"};
constexpr std::size_t max_target = 16'000;  // a head above 16 KiB is refused by every server (protocol/WIRE.md)

const std::map<std::string, Arrivals> arrivals{
    {"closed", Arrivals::closed}, {"constant", Arrivals::constant}, {"poisson", Arrivals::poisson}};

/// What is parsed first and put into the plan when all options are known.
struct RawPlan {
  explicit RawPlan(const LoadPlan& defaults)
      : plan(defaults),
        duration(defaults.duration),
        warmup(defaults.warmup),
        timeout(defaults.timeout),
        connect_timeout(defaults.connect_timeout),
        round(defaults.round),
        look_every(defaults.look_every),
        linger(defaults.linger) {}

  LoadPlan plan;
  double rate_hz = 0;
  bool rate_is_per_connection = false;
  std::chrono::nanoseconds duration;
  std::chrono::nanoseconds warmup;
  std::chrono::nanoseconds timeout;
  std::chrono::nanoseconds connect_timeout;
  std::chrono::nanoseconds round;
  std::chrono::nanoseconds look_every;
  std::chrono::nanoseconds linger;
  std::chrono::nanoseconds service_time{0};
};

std::optional<double> parse_rate(std::string_view text) {
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(rate >= least_rate && rate <= most_rate)) return std::nullopt;
  return rate;
}

void add_rate(CommandLine& line, RawPlan& raw) {
  const auto read = [&raw](const std::string& text) {
    std::string_view number{text};
    raw.rate_is_per_connection = number.ends_with("/conn");
    if (raw.rate_is_per_connection) number.remove_suffix(5);
    const auto rate = parse_rate(number);
    if (!rate)
      refuse_value("--rate", fmt::format("'{}' is no rate; want messages a second, {:g} to {:g}: 5000 or 100/conn",
                                         text, least_rate, most_rate));
    raw.rate_hz = *rate;
  };
  line.add_read("--rate", read, "open loop: messages a second in all, or on each connection with /conn")
      .type_name("R[/conn]");
}

void add_connect_rate(CommandLine& line, LoadPlan& plan) {
  const auto read = [&plan](const std::string& text) {
    plan.connect_rate_hz = text == "burst" ? std::nullopt : parse_rate(text);
    if (text != "burst" && !plan.connect_rate_hz)
      refuse_value("--connect-rate", fmt::format("'{}' is neither connections a second, {:g} to {:g}, nor 'burst'",
                                                 text, least_rate, most_rate));
  };
  line.add_read("--connect-rate", read, "connections opened a second, or all at once").type_name("N|burst");
}

void add_load_options(CommandLine& line, RawPlan& raw, const std::set<std::string>& spoken) {
  LoadPlan& plan = raw.plan;
  add_url(line, "url", plan.url, spoken, "where the server listens, e.g. tcp://127.0.0.1:7000").required();
  add_choice(line, "--workload", plan.workload, workloads(),
             fmt::format("application protocol (default {})", netdyno::to_string(plan.workload)));
  line.add_number("-c,--connections", plan.connections, 1U, 1'000'000U, "connections (default 1)");
  add_rate(line, raw);
  add_choice(line, "--arrivals", plan.arrivals, arrivals,
             "when messages are meant to be sent (default: constant with --rate, else closed)");
  line.add_number("--depth", plan.depth, 1U, 100'000U, "closed loop: messages in flight per connection (default 1)");
  add_duration(line, "--round", raw.round,
               "closed loop: who is answered sends at the next multiple of this time, together with the others");
  add_duration(line, "--look-every", raw.look_every,
               "closed loop: look at the sockets no more often than this; costs less where many messages come, and "
               "response times read up to so much longer (default: as messages come)");
  add_bytes(line, "--size", plan.size, {1, max_size}, "size of a message (default 31)");
  add_duration(line, "--duration", raw.duration, "the measured window (default 10s)");
  add_duration(line, "--warmup", raw.warmup, "load before the window (default 1s)");
  add_duration(line, "--timeout", raw.timeout,
               fmt::format("how long an answer may take (default {:g}s)", seconds(plan.timeout)));
}

void add_connection_options(CommandLine& line, RawPlan& raw) {
  LoadPlan& plan = raw.plan;
  add_connect_rate(line, plan);
  add_duration(line, "--connect-timeout", raw.connect_timeout, "how long a connect may take (default 5s)");
  line.add_number(
      "--requests-per-connection", plan.requests_per_connection, 1U, 1'000'000'000U,
      "close a connection when so many requests are answered, and make it anew for the next (default: never)");
  add_duration(line, "--linger", raw.linger, "how long connections stay open after the last answer (default 0)");
  line.add_texts("--source-ips", plan.source_ips, "local addresses to connect from, in turn").type_name("A,B,...");
  add_choice(line, "--nodelay", plan.nodelay, {{"on", true}, {"off", false}}, "TCP_NODELAY (default on)");
  add_bytes(line, "--send-buffer", plan.send_buffer, {1, 1ULL << 30},
            "SO_SNDBUF of each connection, over tcp (default: the system's)");
  add_choice(line, "--write-mode", plan.write_mode, {{"gathered", WriteMode::gathered}, {"split", WriteMode::split}},
             "header and body of a message in one write or two (default gathered)");
}

void add_other_options(CommandLine& line, RawPlan& raw) {
  LoadPlan& plan = raw.plan;
  add_choice(line, "--audience", plan.audience, {{"others", Audience::others}, {"all", Audience::all}},
             "chat: who gets a message, as the server was told (default others)");
  line.add_number("--slow-readers", plan.slow_readers, 0U, 1'000'000U,
                  "chat: so many of the connections read 10 KiB a second and say nothing; the others are measured");
  add_duration(line, "--service-time", raw.service_time, "rpc: service time each request asks for (default 0)");
  line.add_number("--threads", plan.threads, 1U, 1024U, "threads that generate (default 1)");
  add_multicast_anywhere(line, plan.multicast_anywhere);
  add_whole_number(line, "--seed", plan.seed, "seed of the random arrivals (default 1)");
  line.add_text("--json", plan.json_file, "write the result as JSON (protocol/load-result.md); - is stdout")
      .type_name("FILE");
  line.add_text("--hdr", plan.hdr_file, "write the latency histograms as an HdrHistogram log").type_name("FILE");
  line.add_number("--events-fd", plan.events_fd, 0, 1 << 20,
                  "write what happens, one JSON object a line, to this descriptor")
      .type_name("FD");
}

std::size_t smallest_message(Workload workload) {
  const bool ends_with_newline = workload == Workload::echo || workload == Workload::lines;
  return min_stamp_size + (ends_with_newline ? 1 : 0);
}

/// The longest message of a workload that one datagram holds, as --size counts it.
std::size_t longest_in_a_datagram(Workload workload) {
  constexpr std::size_t fields_beside_the_stamp = 64;  // of a request or response of rpc, at most
  if (workload == Workload::rpc) return max_datagram - frame_header_size - fields_beside_the_stamp;
  return workload == Workload::chat ? max_datagram - frame_header_size : max_datagram;
}

/// The same for transports that carry messages.
std::string message_contradiction(const LoadPlan& plan) {
  const std::string& transport = plan.url.transport;
  if (plan.workload == Workload::lines || plan.workload == Workload::http)
    return fmt::format("--workload: {} carries echo, rpc and chat; want one of them", transport);
  if (!plan.nodelay) return fmt::format("--nodelay off is for tcp; {} has no such delay", transport);
  if (plan.send_buffer > 0) return fmt::format("--send-buffer is for tcp; leave it out over {}", transport);
  if (plan.requests_per_connection > 0)
    return fmt::format("--requests-per-connection is for tcp; leave it out over {}", transport);
  if (plan.slow_readers > 0) return fmt::format("--slow-readers is for tcp; leave it out over {}", transport);
  if (plan.write_mode == WriteMode::split)
    return fmt::format("--write-mode split is for tcp; over {} a message leaves whole", transport);
  const std::size_t longest = longest_in_a_datagram(plan.workload);
  if (transport != "zmq+tcp" && plan.size > longest)
    return fmt::format("--size: over {} a message of {} has at most {} bytes", transport,
                       netdyno::to_string(plan.workload), longest);
  if (transport == "multicast" && plan.workload == Workload::chat && plan.audience != Audience::all)
    return "--audience: a multicast message reaches its sender too; say --audience all";
  return {};
}

/// What takes too long, or asks for too much in all; empty when nothing does.
std::string excess(const RawPlan& raw) {
  const std::pair<const char*, std::chrono::nanoseconds> times[] = {{"--duration", raw.duration},
                                                                    {"--warmup", raw.warmup},
                                                                    {"--timeout", raw.timeout},
                                                                    {"--linger", raw.linger},
                                                                    {"--round", raw.round},
                                                                    {"--look-every", raw.look_every},
                                                                    {"--connect-timeout", raw.connect_timeout}};
  for (const auto& [name, time] : times)
    if (time > longest_time) return fmt::format("{}: at most {}m", name, std::chrono::minutes{longest_time}.count());
  const double all_hz = raw.rate_is_per_connection ? raw.rate_hz * raw.plan.connections : raw.rate_hz;
  if (all_hz > most_rate) return fmt::format("--rate: {:g} messages a second in all; at most {:g}", all_hz, most_rate);
  const double ramp_s = raw.plan.connect_rate_hz ? raw.plan.connections / *raw.plan.connect_rate_hz : 0;
  if (ramp_s > std::chrono::duration<double>{longest_ramp}.count())
    return fmt::format("--connect-rate: {} connections at {:g} a second take {:.0f}m; at most {}m",
                       raw.plan.connections, *raw.plan.connect_rate_hz, ramp_s / 60,
                       std::chrono::minutes{longest_ramp}.count());
  return {};
}

/// What no single option can tell; empty when the plan can be carried out.
std::string contradiction(const RawPlan& raw, const CommandLine& line) {
  const LoadPlan& plan = raw.plan;
  const bool open = plan.arrivals != Arrivals::closed;
  if (auto why = excess(raw); !why.empty()) return why;
  if (open && raw.rate_hz == 0) return "--arrivals " + std::string{to_string(plan.arrivals)} + " needs --rate";
  if (!open && raw.rate_hz > 0) return "--arrivals closed goes as fast as the server answers; leave --rate out";
  if (open && line.given("--depth")) return "--depth is for the closed loop; leave --rate or --depth out";
  if (open && raw.round.count() > 0) return "--round is for the closed loop; leave --rate or --round out";
  if (open && raw.look_every.count() > 0)
    return "--look-every is for the closed loop; leave --rate or --look-every out";
  if (plan.requests_per_connection > 0) {
    if (plan.workload == Workload::chat)
      return "--requests-per-connection is for requests that are answered; those of chat go to everybody";
    if (plan.depth > plan.requests_per_connection)
      return "--depth: a connection cannot have more in flight than --requests-per-connection";
  }
  if (raw.round.count() > 0 && raw.look_every.count() > 0) return "--look-every and --round: leave one of them out";
  if (plan.size < smallest_message(plan.workload))
    return "--size: a " + std::string{to_string(plan.workload)} + " message that identifies itself has at least " +
           std::to_string(smallest_message(plan.workload)) + " bytes";
  if (plan.workload == Workload::http && plan.size > max_target)
    return "--size: an http request target has at most " + std::to_string(max_target) + " bytes";
  if (carries_messages(plan.url))
    if (auto why = message_contradiction(plan); !why.empty()) return why;
  if (plan.url.port == 0) return "url: port 0 cannot be connected to";
  if (raw.duration.count() <= 0) return "--duration must be longer than 0";
  if (raw.timeout.count() <= 0) return "--timeout must be longer than 0";
  if (raw.connect_timeout.count() <= 0) return "--connect-timeout must be longer than 0";
  if (plan.threads > plan.connections) return "--threads: more threads than connections";
  if (raw.service_time > std::chrono::seconds{10}) return "--service-time is at most 10s";
  if (raw.service_time.count() > 0 && plan.workload != Workload::rpc) return "--service-time is for --workload rpc";
  if (plan.slow_readers > 0 && plan.workload != Workload::chat) return "--slow-readers is for --workload chat";
  if (plan.slow_readers >= plan.connections)
    return "--slow-readers: somebody has to talk; want fewer than --connections";
  const bool witnesses = plan.workload == Workload::chat && plan.audience == Audience::others;
  const std::uint32_t speakers = plan.connections - plan.slow_readers;
  if (witnesses && speakers < 2 * plan.threads)
    return "chat to others is timed by a second connection of the same thread: --connections (without --slow-readers) "
           "must be at least twice --threads";
  if (speakers < plan.threads) return "--slow-readers: every thread needs a connection that talks";
  if (plan.events_fd >= 0 && fcntl(plan.events_fd, F_GETFD) < 0)
    return "--events-fd: descriptor " + std::to_string(plan.events_fd) + " is not open";
  return {};
}

}  // namespace

bool carries_messages(const Url& url) { return url.transport != "tcp"; }

std::string_view to_string(Arrivals value) {
  for (const auto& [name, known] : arrivals)
    if (known == value) return name;
  return "?";
}

namespace {

void add_options(CommandLine& line, RawPlan& raw, const std::set<std::string>& spoken) {
  add_load_options(line, raw, spoken);
  add_connection_options(line, raw);
  add_other_options(line, raw);
}

LoadPlan parse(CommandLine& line, RawPlan& raw, const std::set<Workload>& spoken, int argc, const char* const* argv) {
  LoadPlan& plan = raw.plan;
  const std::string& program = line.program();
  line.parse(argc, argv);

  if (!spoken.contains(plan.workload))
    usage_error(program, fmt::format("--workload: {} is not spoken here; want {}", netdyno::to_string(plan.workload),
                                     netdyno::to_string(*spoken.begin())));
  if (raw.rate_hz > 0 && !line.given("--arrivals")) plan.arrivals = Arrivals::constant;
  if (const auto why = contradiction(raw, line); !why.empty()) usage_error(program, why);
  if (raw.rate_hz > 0)
    plan.rate_hz = raw.rate_is_per_connection ? raw.rate_hz * (plan.connections - plan.slow_readers) : raw.rate_hz;
  plan.duration = raw.duration.count();
  plan.warmup = raw.warmup.count();
  plan.timeout = raw.timeout.count();
  plan.connect_timeout = raw.connect_timeout.count();
  plan.round = raw.round.count();
  plan.look_every = raw.look_every.count();
  plan.linger = raw.linger.count();
  plan.service_us =
      static_cast<std::int32_t>(std::chrono::duration_cast<std::chrono::microseconds>(raw.service_time).count());
  return plan;
}

template <typename Value>
std::set<Value> all_of(const std::map<std::string, Value>& choices) {
  std::set<Value> values;
  for (const auto& [name, value] : choices) values.insert(value);
  return values;
}

}  // namespace

LoadPlan parse_load_plan(int argc, const char* const* argv) {
  RawPlan raw{LoadPlan{}};
  CommandLine line{description, argv[0]};
  add_options(line, raw, transports);
  return parse(line, raw, all_of(workloads()), argc, argv);
}

LoadPlan parse_load_plan(int argc, const char* const* argv, const PlanSubset& subset) {
  RawPlan raw{subset.defaults};
  CommandLine line{subset.description, argv[0]};
  add_options(line, raw, subset.transports);
  line.keep_only(subset.options);
  subset.add_own(line);
  return parse(line, raw, subset.workloads, argc, argv);
}

}  // namespace netdyno::load
