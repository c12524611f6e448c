#include "loadgen/plan.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <map>

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
  if (!whole || !std::isfinite(rate) || rate <= 0 || rate > 1e9) return std::nullopt;
  return rate;
}

void add_rate(CLI::App& app, RawPlan& raw) {
  app.add_option_function<std::string>(
         "--rate",
         [&raw](const std::string& text) {
           std::string_view number{text};
           raw.rate_is_per_connection = number.ends_with("/conn");
           if (raw.rate_is_per_connection) number.remove_suffix(5);
           const auto rate = parse_rate(number);
           if (!rate)
             throw CLI::ValidationError("--rate",
                                        "'" + text + "' is no rate; want messages a second: 5000 or 100/conn");
           raw.rate_hz = *rate;
         },
         "open loop: messages a second in all, or on each connection with /conn")
      ->type_name("R[/conn]");
}

void add_connect_rate(CLI::App& app, LoadPlan& plan) {
  app.add_option_function<std::string>(
         "--connect-rate",
         [&plan](const std::string& text) {
           plan.connect_rate_hz = text == "burst" ? std::nullopt : parse_rate(text);
           if (text != "burst" && !plan.connect_rate_hz)
             throw CLI::ValidationError("--connect-rate", "'" + text + "' is neither connections a second nor 'burst'");
         },
         "connections opened a second, or all at once")
      ->type_name("N|burst");
}

void add_load_options(CLI::App& app, RawPlan& raw, const std::set<std::string>& spoken) {
  LoadPlan& plan = raw.plan;
  add_url(app, "url", plan.url, spoken, "where the server listens, e.g. tcp://127.0.0.1:7000")->required();
  add_choice(app, "--workload", plan.workload, workloads(),
             fmt::format("application protocol (default {})", netdyno::to_string(plan.workload)));
  app.add_option("-c,--connections", plan.connections, "connections (default 1)")->check(CLI::Range(1U, 1'000'000U));
  add_rate(app, raw);
  add_choice(app, "--arrivals", plan.arrivals, arrivals,
             "when messages are meant to be sent (default: constant with --rate, else closed)");
  app.add_option("--depth", plan.depth, "closed loop: messages in flight per connection (default 1)")
      ->check(CLI::Range(1U, 100'000U));
  add_duration(app, "--round", raw.round,
               "closed loop: who is answered sends at the next multiple of this time, together with the others");
  add_duration(app, "--look-every", raw.look_every,
               "closed loop: look at the sockets no more often than this; costs less where many messages come, and "
               "response times read up to so much longer (default: as messages come)");
  add_bytes(app, "--size", plan.size, {1, max_size}, "size of a message (default 31)");
  add_duration(app, "--duration", raw.duration, "the measured window (default 10s)");
  add_duration(app, "--warmup", raw.warmup, "load before the window (default 1s)");
  add_duration(app, "--timeout", raw.timeout,
               fmt::format("how long an answer may take (default {:g}s)", seconds(plan.timeout)));
}

void add_connection_options(CLI::App& app, RawPlan& raw) {
  LoadPlan& plan = raw.plan;
  add_connect_rate(app, plan);
  add_duration(app, "--connect-timeout", raw.connect_timeout, "how long a connect may take (default 5s)");
  add_duration(app, "--linger", raw.linger, "how long connections stay open after the last answer (default 0)");
  app.add_option("--source-ips", plan.source_ips, "local addresses to connect from, in turn")
      ->delimiter(',')
      ->type_name("A,B,...");
  add_choice(app, "--nodelay", plan.nodelay, {{"on", true}, {"off", false}}, "TCP_NODELAY (default on)");
  add_bytes(app, "--send-buffer", plan.send_buffer, {1, 1ULL << 30},
            "SO_SNDBUF of each connection, over tcp (default: the system's)");
  add_choice(app, "--write-mode", plan.write_mode, {{"gathered", WriteMode::gathered}, {"split", WriteMode::split}},
             "header and body of a message in one write or two (default gathered)");
}

void add_other_options(CLI::App& app, RawPlan& raw) {
  LoadPlan& plan = raw.plan;
  add_choice(app, "--audience", plan.audience, {{"others", Audience::others}, {"all", Audience::all}},
             "chat: who gets a message, as the server was told (default others)");
  add_duration(app, "--service-time", raw.service_time, "rpc: service time each request asks for (default 0)");
  app.add_option("--threads", plan.threads, "threads that generate (default 1)")->check(CLI::Range(1U, 1024U));
  add_multicast_anywhere(app, plan.multicast_anywhere);
  add_whole_number(app, "--seed", plan.seed, "seed of the random arrivals (default 1)");
  app.add_option("--json", plan.json_file, "write the result as JSON (protocol/load-result.md); - is stdout")
      ->type_name("FILE");
  app.add_option("--hdr", plan.hdr_file, "write the latency histograms as an HdrHistogram log")->type_name("FILE");
  app.add_option("--events-fd", plan.events_fd, "write what happens, one JSON object a line, to this descriptor")
      ->type_name("FD")
      ->check(CLI::Range(0, 1 << 20));
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

/// What no single option can tell; empty when the plan can be carried out.
std::string contradiction(const RawPlan& raw, const CLI::App& app) {
  const LoadPlan& plan = raw.plan;
  const bool open = plan.arrivals != Arrivals::closed;
  if (open && raw.rate_hz == 0) return "--arrivals " + std::string{to_string(plan.arrivals)} + " needs --rate";
  if (!open && raw.rate_hz > 0) return "--arrivals closed goes as fast as the server answers; leave --rate out";
  if (open && app.count("--depth") > 0) return "--depth is for the closed loop; leave --rate or --depth out";
  if (open && raw.round.count() > 0) return "--round is for the closed loop; leave --rate or --round out";
  if (open && raw.look_every.count() > 0)
    return "--look-every is for the closed loop; leave --rate or --look-every out";
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
  const bool witnesses = plan.workload == Workload::chat && plan.audience == Audience::others;
  if (witnesses && plan.connections < 2 * plan.threads)
    return "chat to others is timed by a second connection of the same thread: --connections must be at least twice "
           "--threads";
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

void add_options(CLI::App& app, RawPlan& raw, const std::set<std::string>& spoken) {
  add_load_options(app, raw, spoken);
  add_connection_options(app, raw);
  add_other_options(app, raw);
}

LoadPlan parse(CLI::App& app, RawPlan& raw, const std::set<Workload>& spoken, int argc, const char* const* argv) {
  LoadPlan& plan = raw.plan;
  const std::string program = program_name(argv[0]);
  app.name(program);
  parse_or_exit(app, program, argc, argv);

  if (!spoken.contains(plan.workload))
    usage_error(program, fmt::format("--workload: {} is not spoken here; want {}", netdyno::to_string(plan.workload),
                                     netdyno::to_string(*spoken.begin())));
  if (raw.rate_hz > 0 && app.count("--arrivals") == 0) plan.arrivals = Arrivals::constant;
  if (const auto why = contradiction(raw, app); !why.empty()) usage_error(program, why);
  if (raw.rate_hz > 0) plan.rate_hz = raw.rate_is_per_connection ? raw.rate_hz * plan.connections : raw.rate_hz;
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

void keep_only(CLI::App& app, const std::set<std::string>& names) {
  for (CLI::Option* option : app.get_options()) {
    const bool always = option == app.get_help_ptr() || option->get_positional();
    if (!always && !names.contains("--" + option->get_lnames().front())) app.remove_option(option);
  }
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
  CLI::App app{description};
  add_options(app, raw, transports);
  return parse(app, raw, all_of(workloads()), argc, argv);
}

LoadPlan parse_load_plan(int argc, const char* const* argv, const PlanSubset& subset) {
  RawPlan raw{subset.defaults};
  CLI::App app{subset.description};
  add_options(app, raw, subset.transports);
  keep_only(app, subset.options);
  subset.add_own(app);
  return parse(app, raw, subset.workloads, argc, argv);
}

}  // namespace netdyno::load
