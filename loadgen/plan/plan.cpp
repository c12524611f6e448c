#include "loadgen/plan/plan.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>

#include "lib/cli/option_values.hpp"
#include "lib/measure/distribution.hpp"
#include "lib/measure/process.hpp"
#include "lib/measure/stamp.hpp"
#include "lib/net/multicast.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"
#include "loadgen/plan/built_with.hpp"
#include "loadgen/plan/schedule.hpp"

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
  netdyno-load http://127.0.0.1:8080/path -c 20 -X POST -H 'Content-Type: application/json' -d @body.json
      requests to any server of HTTP/1.1
  netdyno-load tcp://127.0.0.1:6379 -c 20 --send 'PING\r\n' --expect '+PONG'
      any protocol in which each message has one reply, in order
  netdyno-load tcp://127.0.0.1:7000 --workload chat -c 322 --messages 100 --every 5ms
      clients that write and never read: how many finish, whatever becomes of what they wrote
  netdyno-load udp://127.0.0.1:7000 --workload chat --audience all -c 100
      datagrams; what was lost, came twice or out of order is shown with the times
)";

constexpr std::size_t max_size = 64 << 20;
constexpr Nanos one_minute = 60 * one_second;
constexpr Nanos longest_time = 24 * 60 * one_minute;
constexpr Nanos longest_ramp = 60 * one_minute;
constexpr Nanos longest_count = 60 * one_minute;  // where no limit is given for so many messages
const std::set<std::string> transports{"tcp", "udp", "multicast", "zmq+tcp"};
constexpr std::uint32_t most_shares = 1024;
constexpr std::size_t most_of_a_web_reply = 1 << 20;  // protocol/WIRE.md, Web
constexpr std::size_t most_chunks = 10'000;
constexpr std::size_t least_chunk = min_stamp_size + 4;  // and its number
constexpr std::size_t chunk_overhead = 128;
constexpr std::size_t max_target = 16'000;  // a head above 16 KiB is refused by every server (protocol/WIRE.md)

const std::map<std::string, Spin> spins{{"off", Spin::off}, {"auto", Spin::automatic}, {"on", Spin::on}};
const std::map<std::string, WriteDue> write_dues{{"each", WriteDue::separate}, {"joined", WriteDue::joined}};
const std::map<std::string, Arrivals> arrivals{
    {"closed", Arrivals::closed}, {"constant", Arrivals::constant}, {"poisson", Arrivals::poisson}};

template <typename Value>
std::string_view find_name(const std::map<std::string, Value>& choices, Value value) {
  for (const auto& [name, known] : choices)
    if (known == value) return name;
  return "?";
}

/// Values that are parsed first and put into the plan when all options are known.
struct RawPlan {
  explicit RawPlan(const LoadPlan& defaults) : plan(defaults) {}

  LoadPlan plan;
  double rate_hz = 0;
  Rates rates;
  std::chrono::nanoseconds service_time{0};
  std::chrono::nanoseconds slow_request_time{0};
  HttpRequest http;
  std::vector<WeightedPath> paths;
  std::string exchange_send, exchange_expect, exchange_until;
  std::size_t exchange_size = 0;
  std::optional<LengthField> exchange_length;
};

/// "0.01": one of a hundred.
std::optional<double> parse_fraction(const std::string& text) {
  double fraction = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, fraction);
  if (read.ec != std::errc{} || read.ptr != end || !(fraction >= 0 && fraction < 1)) return std::nullopt;
  return fraction;
}

std::int32_t microseconds_of(std::chrono::nanoseconds time) {
  return static_cast<std::int32_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

/// "2/3": the second of three.
std::optional<Share> parse_share(const std::string& text) {
  Share share;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, share.index);
  if (index.ec != std::errc{} || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto count = std::from_chars(index.ptr + 1, end, share.count);
  if (count.ec != std::errc{} || count.ptr != end || share.index == 0 || share.index > share.count) return std::nullopt;
  if (share.count > most_shares) return std::nullopt;
  --share.index;
  return share;
}

void add_rate(CommandLine& line, RawPlan& raw) {
  const auto read = [&raw](const std::string& text) {
    const auto rates = parse_rates(text);
    if (!rates)
      refuse_value("--rate", fmt::format("'{}' is no rate; want messages a second, {:g} to {:g}: 5000, 5k or 100/conn; "
                                         "or steps: 1k,5k,20k/10s; or a ramp: 1k..20k/30s",
                                         text, least_rate, most_rate));
    raw.rates = *rates;
    const auto& steps = rates->steps;
    raw.rate_hz = steps[0].length > 0 ? mean_hz(steps) : steps[0].from_hz;
  };
  line.add_read("--rate", read,
                "open loop: messages a second in all, or on each connection with /conn; 1k,5k,20k/10s: steps of 10 s; "
                "1k..20k/30s: a ramp; commas join steps and ramps, which together are the window")
      .type_name("R[..R][/conn][/DUR],...");
}

void add_connect_rate(CommandLine& line, LoadPlan& plan) {
  const auto read = [&plan](const std::string& text) {
    plan.connects_when_due = text == "when-due";
    plan.connect_rate_hz = text == "burst" || plan.connects_when_due ? std::nullopt : parse_rate(text);
    if (text != "burst" && !plan.connects_when_due && !plan.connect_rate_hz)
      refuse_value("--connect-rate",
                   fmt::format("'{}' is neither connections a second, {:g} to {:g}, nor 'burst' or 'when-due'", text,
                               least_rate, most_rate));
  };
  line.add_read("--connect-rate", read, "connections opened a second, all at once, or each for its first message")
      .type_name("N|burst|when-due");
}

/// Where http requests go: all to one server.
void take_http_url(LoadPlan& plan, const std::string& text) {
  const auto url = parse_http_url(text);
  if (!url || url->scheme.starts_with("ws"))
    refuse_value("url", fmt::format("'{}' is no URL; want e.g. http://127.0.0.1:8080/path", text));
  const bool tls = url->scheme == "https";
  if (!plan.http) {
    plan.http.emplace();
    plan.url = url->server;
    plan.tls.on = tls;
  } else if (format_url(plan.url) != format_url(url->server) || plan.tls.on != tls) {
    refuse_value("url", fmt::format("'{}' is another server than '{}'; want one", text, format_url(plan.url)));
  }
  plan.http->targets.push_back(url->target);
}

void take_websocket_url(LoadPlan& plan, const std::string& text) {
  const auto url = parse_http_url(text);
  if (!url) refuse_value("url", fmt::format("'{}' is no URL; want e.g. ws://127.0.0.1:8080/path", text));
  plan.url = url->server;
  plan.tls.on = url->scheme == "wss";
  plan.websocket.emplace().target = url->target;
}

/// The generator's own address: also http://..., or @FILE with such URLs.
void add_any_url(CommandLine& line, LoadPlan& plan) {
  const auto read = [&plan](const std::string& text) {
    const std::string scheme = lower_case(text.substr(0, text.find("://")));
    if (scheme == "http" || scheme == "https") return take_http_url(plan, text);
    if (scheme == "ws" || scheme == "wss") return take_websocket_url(plan, text);
    if (text.starts_with('@')) {
      for (const std::string& url : lines_of_file("url", text.substr(1))) take_http_url(plan, url);
      if (!plan.http) refuse_value("url", fmt::format("'{}' holds no URL", text.substr(1)));
      return;
    }
    auto parsed = parse_url(text);
    if (parsed && parsed->transport == "tls") {
      parsed->transport = "tcp";
      plan.tls.on = true;
    }
    if (!parsed)
      refuse_value("url", "'" + text + "' is no URL; want e.g. tcp://127.0.0.1:7000 or http://127.0.0.1:8080/path");
    if (!transports.contains(parsed->transport))
      refuse_value("url", "transport '" + parsed->transport + "' is not supported");
    plan.url = *parsed;
  };
  line.add_read("url", read,
                "where the server listens: tcp://127.0.0.1:7000, http://127.0.0.1:8080/path, or @FILE with a URL of "
                "one http server on each line; tls:// and https:// are encrypted; ws:// and wss:// carry "
                "echo and chat")
      .required();
}

void add_load_options(CommandLine& line, RawPlan& raw) {
  LoadPlan& plan = raw.plan;
  add_choice(line, "--workload", plan.workload, workloads(),
             fmt::format("application protocol (default {})", netdyno::to_string(plan.workload)));
  line.add_number("-c,--connections", plan.connections, 1U, 1'000'000U, "connections (default 1)");
  line.add_number("--busy-connections", plan.busy_connections, 1U, 1'000'000U,
                  "the first N connections send; the others stay connected and idle (default all)");
  add_rate(line, raw);
  add_choice(line, "--arrivals", plan.arrivals, arrivals,
             "when messages are meant to be sent (default: constant with --rate, else closed)");
  line.add_number("--depth", plan.depth, 1U, 100'000U,
                  "messages in flight per connection, others wait (default 1; in an open loop as many as are due, "
                  "except for web, over http:// and with --send)");
  add_duration(line, "--round", plan.round,
               "closed loop: connections that have their reply send together at the next multiple of this time");
  add_duration(line, "--look-every", plan.poll_every,
               "poll sockets and schedule at most this often; that costs less where many messages come, and makes "
               "response times up to this much longer, in an open loop up to twice (default: at once)");
  add_choice(line, "--write-due", plan.write_due, write_dues,
             "due messages leave one by one, in the order of the schedule (each), or at each poll all those of a "
             "connection leave in one call (joined; default each)");
  add_choice(
      line, "--spin", plan.spin, spins,
      "open loop, rounds: wake as early as timers are late, and spin until a message is due; auto measures timers "
      "under the load, on before it; off does neither, costs less and sends later. Closed loop, servers not netdyno's: "
      "poll for replies for 20us before sleeping, while most come by then (auto), always (on) or never (off) "
      "(default auto)");
  add_bytes(line, "--size", plan.size, {1, max_size}, "size of a message (default 31)");
  add_duration(line, "--duration", plan.duration, "the measured window (default 10s; with --count an hour at most)");
  add_whole_number(line, "-n,--count", plan.count,
                   "send N messages, and end when they are answered (then the default of --warmup is 0)", 1);
  add_duration(line, "--warmup", plan.warmup, "load before the window (default 1s)");
  add_duration(line, "--timeout", plan.timeout,
               fmt::format("how long an answer may take (default {:g}s)", seconds(plan.timeout)));
}

void add_connection_options(CommandLine& line, LoadPlan& plan) {
  add_connect_rate(line, plan);
  add_duration(line, "--connect-timeout", plan.connect_timeout, "how long a connect may take (default 5s)");
  add_choice(line, "--start", plan.speaks_at_once, {{"together", false}, {"at-once", true}},
             "chat, closed loop: clients begin to send when all connects have ended, or each as soon as it is "
             "connected; what they send while others connect is in no figure (default together)");
  line.add_number("--messages", plan.messages_each, 1U, 1'000'000U,
                  "chat: each client writes N messages, reads nothing and leaves; reported: how many finish without an "
                  "error, whether or not what they wrote was read");
  line.add_number("--chunks", plan.chunks, std::size_t{1}, most_chunks,
                  "web: each reply is a stream of N chunks (server-sent events)");
  add_duration(line, "--every", plan.every,
               "with --messages: time from a client's write to its next; with --chunks: from a chunk to the next "
               "(default 5ms)");
  line.add_number("--requests-per-connection", plan.requests_per_connection, 1U, 1'000'000'000U,
                  "close a connection after N replies, and open a new one for the next request (default: never)");
  line.add_flag("--reconnect", plan.reconnects,
                "--workload http: the server may close a connection after a reply, as HTTP allows; the next request "
                "opens another, and unanswered ones are resent (http:// and --send always reconnect)");
  add_duration(line, "--linger", plan.linger, "how long connections stay open after the last answer (default 0)");
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
             "chat: who receives a message, as the server was started (default others)");
  line.add_number("--slow-readers", plan.slow_readers, 0U, 1'000'000U,
                  "chat: N of the connections read 10 KiB a second and send nothing; the others are measured");
  add_duration(line, "--service-time", raw.service_time,
               "rpc, web, grpc: service time each request asks for (default 0)");
  add_choice(line, "--service-kind", plan.service_kind, {{"wait", ServiceKind::wait}, {"cpu", ServiceKind::cpu}},
             "web, grpc: whether that is a wait or burns CPU (default wait)");
  const auto read_slow = [&plan](const std::string& text) {
    const auto fraction = parse_fraction(text);
    if (!fraction) refuse_value("--slow-requests", fmt::format("'{}' is no share below 1; want e.g. 0.01", text));
    plan.slow_requests = *fraction;
  };
  line.add_read(
          "--slow-requests", read_slow,
          "rpc, web, grpc: the share of requests that ask for --slow-request-time instead, the same for each server")
      .type_name("SHARE");
  add_duration(line, "--slow-request-time", raw.slow_request_time, "rpc, web, grpc: service time of --slow-requests");
  line.add_number("--threads", plan.threads, 1U, 1024U, "threads that generate (default 1)");
  add_multicast_anywhere(line, plan.multicast_anywhere);
  const auto read_share = [&plan](const std::string& text) {
    const auto share = parse_share(text);
    if (!share) refuse_value("--share", fmt::format("'{}' is no share; want e.g. 1/2, or 2/2", text));
    plan.share = *share;
  };
  line.add_read("--share", read_share,
                "make one of several equal parts of this load, whose others are made by other programs")
      .type_name("I/N");
  line.add_flag("--await-go", plan.await_go,
                "with all connected, begin at the moment that a line on stdin names: 'go N', nanoseconds of "
                "CLOCK_MONOTONIC; a part of a chat then awaits 'sent N', the messages of all parts");
  line.add_flag("--turns", plan.turns,
                "with all connected, make warm-up and window again and again, at each moment that a line on stdin "
                "names as for --await-go; 'drop' discards the last window, 'end' ends the load");
  line.add_flag("--witness", plan.witness,
                "with --turns: report how long the machine paused the generator's cores in each slice");
  add_whole_number(line, "--seed", plan.seed, "seed of the random arrivals, and of {random:N} (default 1)");
  line.add_text("--json", plan.json_file, "write the result as JSON (protocol/load-result.md); - is stdout")
      .type_name("FILE");
  line.add_text("--hdr", plan.hdr_file, "write the latency histograms as an HdrHistogram log").type_name("FILE");
  line.add_text("--percentiles", plan.percentiles_file,
                "write the response times' percentiles as HdrHistogram prints and plots them, in microseconds")
      .type_name("FILE");
  line.add_text("--csv", plan.csv_file, "write window, steps and intervals as a table").type_name("FILE");
  line.add_text("--prometheus", plan.prometheus_file, "write the figures in Prometheus' text format").type_name("FILE");
  line.add_number("--events-fd", plan.events_fd, 0, 1 << 20,
                  "write what happens, one JSON object a line, to this descriptor")
      .type_name("FD");
}

void add_foreign_options(CommandLine& line, RawPlan& raw) {
  HttpRequest& http = raw.http;
  const auto take_path = [&raw](const std::string& text) {
    const auto weighted = parse_path(text);
    if (!weighted)
      refuse_value("--path", "'" + text +
                                 "' is no path; want e.g. /items, /items=3 (three times as often), or behind "
                                 "a query '/items?id=7 =3'");
    raw.paths.push_back(*weighted);
  };
  const auto read_path = [take_path](const std::string& text) {
    if (!text.starts_with('@')) return take_path(text);
    for (const std::string& path : lines_of_file("--path", text.substr(1))) take_path(path);
  };
  line.add_read_each("--path", read_path,
                     "http://: the path to request, in place of the URL's; several are taken in turn, /a=3 three "
                     "times as often as /b; or @FILE with one on each line")
      .type_name("PATH[=WEIGHT]|@FILE");
  const auto read_method = [&http](const std::string& text) {
    if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; }))
      refuse_value("--method", "'" + text + "' is no method; want e.g. GET or POST");
    http.method = text;
  };
  line.add_read("-X,--method", read_method, "http://: the method (default GET, or POST with --data)");
  const auto read_header = [&http](const std::string& text) {
    const auto colon = text.find(':');
    const bool good = colon != std::string::npos && colon > 0 && text.find_first_of(" \t") > colon;
    if (!good || text.find_first_of(std::string_view{"\r\n\0", 3}) != std::string::npos)
      refuse_value("--header", "'" + text + "' is no header; want 'name: value'");
    // A second length, or another framing than that of the body, and the next request begins in another place for the
    // server than for us.
    if (names_header(text, "content-length") || names_header(text, "transfer-encoding"))
      refuse_value("--header", "'" + text + "': the length of the body follows from --data; leave it out");
    http.headers.push_back(text);
  };
  line.add_read_each("-H,--header", read_header,
                     "http:// and ws://: a header, 'name: value'; may be given several times");
  const auto read_data = [&http](const std::string& text) { http.body = text_or_file("--data", text); };
  line.add_read("-d,--data", read_data, "http://: the body of each request, or @FILE with it").type_name("TEXT|@FILE");
  const auto read_status = [&http](const std::string& text) {
    const bool family = text.size() == 3 && text[0] >= '1' && text[0] <= '5' && text.ends_with("xx");
    int status = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
    const bool exact = error == std::errc{} && end == text.data() + text.size() && status >= 100 && status <= 599;
    if (!family && !exact) refuse_value("--expect-status", "'" + text + "' is no status; want e.g. 200 or 2xx");
    http.lowest_status = family ? (text[0] - '0') * 100 : status;
    http.highest_status = family ? http.lowest_status + 99 : status;
  };
  line.add_read("--expect-status", read_status, "http://: the status of a right reply (default 2xx)")
      .type_name("STATUS|Nxx");
  const std::map<std::string, Check> checks{
      {"status", Check::status}, {"length", Check::length}, {"hash", Check::hash}, {"echo", Check::echo}};
  add_choice(line, "--verify", http.check, checks,
             "http://: the verified part of a reply: its status; its length too, or a hash of its body, against the "
             "first one of the same URL; or that it echoes the target, which then ends with a stamp (default status)");
  const auto add_bytes_or_file = [&line](const std::string& name, std::string& bytes, const std::string& help) {
    return line.add_read(
        name, [&bytes, name](const std::string& text) { bytes = bytes_or_file(name, text); }, help);
  };
  add_bytes_or_file(
      "--send", raw.exchange_send,
      "tcp://: bytes to send, with \\r \\n \\t \\0 \\\\ \\xHH, or @FILE with them; {sequence}, {connection} "
      "and {random:N} are places for numbers")
      .type_name("BYTES|@FILE");
  add_bytes_or_file("--expect", raw.exchange_expect, "with --send: what a right reply begins with")
      .type_name("BYTES|@FILE");
  add_bytes_or_file("--reply-until", raw.exchange_until, "with --send: what a reply ends with (default \\n)")
      .type_name("BYTES");
  add_bytes(line, "--reply-size", raw.exchange_size, {1, max_size}, "with --send: the size of every reply");
  const auto read_length = [&raw](const std::string& text) {
    raw.exchange_length = parse_length_field(text);
    if (!raw.exchange_length)
      refuse_value("--reply-length",
                   "'" + text + "' is no length; want e.g. u32be, u16le@2 (at byte 2) or u32be@8+12 (and 12 more)");
  };
  line.add_read("--reply-length", read_length,
                "with --send: each reply begins with its length: u8, u16be, u32le ..., at byte OFFSET; so many "
                "bytes follow it, and N more or fewer")
      .type_name("uBITS[be|le][@OFFSET][+N|-N]");
  line.add_flag("--repeatable", raw.plan.repeatable,
                "http:// and --send: requests unanswered when their connection ended may be resent, though the server "
                "may have carried them out (default: only GET, HEAD, OPTIONS, TRACE, PUT and DELETE)");
  line.add_text("--unix-socket", raw.plan.unix_socket, "connect to this file, whatever host and port the URL names")
      .type_name("FILE");
  const auto read_assert = [&raw](const std::string& text) {
    const auto assertion = parse_assertion(text);
    if (!assertion)
      refuse_value("--assert",
                   fmt::format("'{}' is no assertion; want e.g. 'p99<5ms', 'rate>=1000' or 'errors=0' "
                               "(mean, {}, rate, errors)",
                               text, fmt::join(percentiles | std::views::transform(&Percentile::name), ", ")));
    raw.plan.assertions.push_back(*assertion);
  };
  line.add_read_each("--assert", read_assert, "exit 4 where this does not hold; may be given several times")
      .type_name("'p99<5ms'");
}

/// Puts the paths of --path in the place of the URL's; returns a contradiction between them, or empty.
std::string settle_paths(HttpRequest& http, const std::vector<WeightedPath>& paths) {
  if (paths.empty()) return {};
  if (http.targets != std::vector<std::string>{"/"}) return "--path: the URL names a path, too; leave one of them out";
  std::vector<std::uint32_t> weights;
  http.targets.clear();
  for (const WeightedPath& weighted : paths) {
    http.targets.push_back(weighted.path);
    weights.push_back(weighted.weight);
  }
  const auto order = order_by_weight(weights);
  if (!order) return "--path: the weights add up to more than 10000; want smaller ones";
  http.turns = *order;
  return {};
}

/// Puts the messages to a foreign server into the plan; returns a contradiction among them, or empty.
std::string settle_foreign(RawPlan& raw, const CommandLine& line) {
  LoadPlan& plan = raw.plan;
  const auto given = [&line](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names)
      if (line.given(name)) return name;
    return {};
  };
  if (plan.http) {
    if (const auto name = given({"--send", "--expect", "--reply-until", "--reply-size", "--reply-length"});
        !name.empty())
      return name + " is for tcp://... and tls://...";
    auto targets = std::move(plan.http->targets);
    plan.http = raw.http;
    plan.http->targets = std::move(targets);
    if (auto why = settle_paths(*plan.http, raw.paths); !why.empty()) return why;
    if (plan.http->method.empty()) plan.http->method = plan.http->body ? "POST" : "GET";
    if (line.given("--workload")) return "--workload: http://... says it already; leave it out";
    if (line.given("--size") && plan.http->check != Check::echo) return "--size is for --verify echo";
    if (plan.http->check == Check::echo && plan.http->targets.size() > 1) return "--verify echo: want one path only";
    plan.workload = Workload::http;
    if (asks_to_close(plan.http->headers)) {
      if (line.given("--requests-per-connection") && plan.requests_per_connection != 1)
        return "--requests-per-connection: after 'Connection: close' a connection takes no other request; leave it out";
      if (plan.depth > 1) return "--depth: after 'Connection: close' a connection takes no other request; leave it out";
      plan.requests_per_connection = 1;
    }
    return {};
  }
  if (plan.websocket) {
    if (const auto name = given({"--send", "--path", "--method", "--data", "--repeatable"}); !name.empty())
      return name + " is not for ws://...; it carries --workload echo and chat";
    plan.websocket->headers = std::exchange(raw.http.headers, {});
    return {};
  }
  if (const auto name = given({"--path", "--method", "--header", "--data", "--expect-status", "--verify"});
      !name.empty())
    return name + " is for http://...";
  if (!line.given("--send")) {
    if (const auto name = given({"--expect", "--reply-until", "--reply-size", "--reply-length"}); !name.empty())
      return name + " goes with --send";
    if (plan.repeatable) return "--repeatable is for http://... and --send";
    return {};
  }
  if (plan.url.transport != "tcp") return "--send is for tcp:// and tls://";
  if (line.given("--workload") || line.given("--size"))
    return "--send says what is sent; leave --workload and --size out";
  if (line.given("--reply-size") + line.given("--reply-until") + line.given("--reply-length") > 1)
    return "--reply-until, --reply-size and --reply-length: want one of them";
  Exchange& exchange = plan.exchange.emplace();
  exchange.send = raw.exchange_send;
  exchange.expect = raw.exchange_expect;
  if (line.given("--reply-until")) exchange.until = raw.exchange_until;
  exchange.size = raw.exchange_size;
  exchange.length = raw.exchange_length;
  if (exchange.send.empty()) return "--send: nothing to send";
  if (exchange.until.empty()) return "--reply-until: want at least one byte";
  return {};
}

std::size_t smallest_message(const LoadPlan& plan) {
  const bool ends_with_newline =
      plan.workload == Workload::echo || plan.workload == Workload::lines || plan.websocket.has_value();
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
  if (plan.workload == Workload::lines || plan.workload == Workload::grpc || speaks_http(plan.workload))
    return fmt::format("--workload: {} carries echo, rpc and chat; want one of them", transport);
  if (!plan.nodelay) return fmt::format("--nodelay off is for tcp; {} has no such delay", transport);
  if (plan.send_buffer > 0) return fmt::format("--send-buffer is for tcp; leave it out over {}", transport);
  if (plan.requests_per_connection > 0)
    return fmt::format("--requests-per-connection is for tcp; leave it out over {}", transport);
  if (plan.slow_readers > 0) return fmt::format("--slow-readers is for tcp; leave it out over {}", transport);
  if (plan.busy_connections > 0) return fmt::format("--busy-connections is for tcp; leave it out over {}", transport);
  if (plan.speaks_at_once) return fmt::format("--start at-once is for tcp; leave it out over {}", transport);
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

/// Returns an error where the plan takes too long, or asks for too much in all; else an empty text.
std::string excess(const RawPlan& raw) {
  const LoadPlan& plan = raw.plan;
  const std::pair<const char*, Nanos> times[] = {
      {"--duration", plan.duration}, {"--warmup", plan.warmup},
      {"--timeout", plan.timeout},   {"--linger", plan.linger},
      {"--round", plan.round},       {"--look-every", plan.poll_every},
      {"--every", plan.every},       {"--connect-timeout", plan.connect_timeout}};
  for (const auto& [name, time] : times)
    if (time > longest_time) return fmt::format("{}: at most {}m", name, longest_time / one_minute);
  if (length_of(raw.rates.steps) > longest_time)
    return fmt::format("--rate: its steps take at most {}m", longest_time / one_minute);
  const double fastest = fastest_hz(raw.rates.steps);
  const std::uint32_t speakers = plan.busy_connections > 0 ? plan.busy_connections : plan.connections;
  const double all_hz = raw.rates.per_connection ? fastest * speakers : fastest;
  if (all_hz > most_rate) return fmt::format("--rate: {:g} messages a second in all; at most {:g}", all_hz, most_rate);
  const double ramp_s = plan.connect_rate_hz ? plan.connections / *plan.connect_rate_hz : 0;
  if (ramp_s > seconds(longest_ramp))
    return fmt::format("--connect-rate: {} connections at {:g} a second take {:.0f}m; at most {}m", plan.connections,
                       *plan.connect_rate_hz, ramp_s / 60, longest_ramp / one_minute);
  return {};
}

/// Returns an error where the plan has a --share and cannot be shared; else an empty text.
std::string share_contradiction(const LoadPlan& plan) {
  if (plan.share.count == 1) return {};
  if (plan.workload == Workload::chat && !plan.await_go)
    return "--share: the parts of a chat need the counts of the others; use --await-go";
  if (plan.count > 0) return "--share: leave --count out; it is known to one program only";
  if (std::uint64_t{plan.threads} * plan.share.count > plan.connections)
    return "--share: every thread of every part needs a connection";
  return {};
}

/// Returns an error where the plan has --turns and cannot run in slices; else an empty text.
std::string turns_contradiction(const RawPlan& raw) {
  const LoadPlan& plan = raw.plan;
  if (!plan.turns) return plan.witness ? "--witness is for --turns" : "";
  if (plan.await_go || plan.share.count > 1) return "--turns: leave --await-go and --share out";
  if (plan.count > 0) return "--turns: leave --count out; a slice is as long as --duration";
  if (length_of(raw.rates.steps) > 0) return "--turns: every slice has one rate; leave the steps of --rate out";
  if (plan.slow_readers > 0) return "--turns: leave --slow-readers out";
  if (plan.speaks_at_once) return "--turns: leave --start at-once out";
  if (carries_messages(plan.url)) return "--turns is for tcp: a lost message would hold up the slices of others";
  return {};
}

/// Why clients cannot speak as soon as they are connected; empty when they can, or need not.
std::string start_contradiction(const LoadPlan& plan) {
  if (!plan.speaks_at_once) return {};
  if (plan.workload != Workload::chat) return "--start at-once is for --workload chat";
  if (plan.arrivals != Arrivals::closed || plan.round > 0)
    return "--start at-once is for a closed loop without rounds: a schedule begins for all at the same moment";
  if (plan.slow_readers > 0) return "--start at-once: leave --slow-readers out";
  return {};
}

/// Options of loads that have answers to wait for, or a window that is as long as was asked for.
constexpr std::initializer_list<const char*> of_other_loads{
    "--rate",     "--arrivals",    "--depth",        "--round",      "--look-every", "--write-due",
    "--spin",     "--duration",    "--warmup",       "--timeout",    "--count",      "--connect-rate",
    "--start",    "--linger",      "--slow-readers", "--share",      "--await-go",   "--turns",
    "--hdr",      "--percentiles", "--csv",          "--prometheus", "--assert",     "--requests-per-connection",
    "--audience", "--source-ips",  "--write-mode",   "--send-buffer"};

/// Why clients cannot write without reading; empty when they can, or need not.
std::string write_only_contradiction(const LoadPlan& plan, const CommandLine& line) {
  if (!plan.is_write_only())
    return line.given("--every") && plan.chunks == 0 ? "--every goes with --messages or --chunks" : "";
  if (plan.workload != Workload::chat || plan.is_foreign())
    return "--messages is for --workload chat: replies that no client reads are no answers";
  if (carries_messages(plan.url) || plan.tls.on || plan.websocket || !plan.unix_socket.empty())
    return "--messages is for tcp://";
  if (plan.threads > 1) return "--messages: one thread makes the burst; leave --threads out";
  for (const char* name : of_other_loads)
    if (line.given(name))
      return fmt::format("{}: the clients of --messages read nothing, and leave when they have written; leave it out",
                         name);
  return {};
}

/// Why a reply cannot be a stream; empty when it can, or is none.
std::string stream_contradiction(const LoadPlan& plan) {
  if (plan.chunks == 0) return {};
  if (plan.workload != Workload::web || plan.is_foreign()) return "--chunks is for --workload web";
  if (plan.size < least_chunk || (plan.size + chunk_overhead) * plan.chunks > most_of_a_web_reply)
    return fmt::format("--size: a chunk has at least {} bytes, and all of a stream, each with {} more, at most 1 MiB",
                       least_chunk, chunk_overhead);
  if (plan.arrivals == Arrivals::closed && plan.depth > 1) return "--chunks: a connection has one stream at a time";
  if (plan.every > 10 * one_second || plan.every < 1'000) return "--every: from a chunk to the next 1us to 10s pass";
  return {};
}

/// Why no connection can stay idle; empty when some can, or none is to.
std::string busy_contradiction(const LoadPlan& plan) {
  if (plan.busy_connections == 0) return {};
  if (plan.workload == Workload::chat)
    return "--busy-connections: in a chat every connection receives what others send, so none is idle";
  if (plan.requests_per_connection > 0)
    return "--busy-connections: idle connections stay open; leave --requests-per-connection out";
  if (plan.busy_connections > plan.connections) return "--busy-connections: want at most as many as --connections";
  if (plan.busy_connections < std::uint64_t{plan.threads} * plan.share.count)
    return "--busy-connections: every thread needs a connection that sends";
  return {};
}

/// Returns an error that only several options together show; empty where the plan can be carried out.
std::string contradiction(const RawPlan& raw, const CommandLine& line) {
  const LoadPlan& plan = raw.plan;
  const bool open = plan.arrivals != Arrivals::closed;
  if (auto why = excess(raw); !why.empty()) return why;
  if (auto why = turns_contradiction(raw); !why.empty()) return why;
  if (auto why = start_contradiction(plan); !why.empty()) return why;
  if (auto why = write_only_contradiction(plan, line); !why.empty()) return why;
  if (auto why = stream_contradiction(plan); !why.empty()) return why;
  if (auto why = not_built(plan, built_with()); !why.empty()) return why;
  if (open && raw.rate_hz == 0) return "--arrivals " + std::string{to_string(plan.arrivals)} + " needs --rate";
  if (!open && raw.rate_hz > 0) return "--arrivals closed goes as fast as the server answers; leave --rate out";
  if (open && line.given("--depth")) {
    if (plan.workload == Workload::chat) return "--depth: chat has no replies; leave --rate or --depth out";
    if (carries_messages(plan.url)) return "--depth over " + plan.url.transport + " is for the closed loop";
  }
  if (line.given("--spin") && !open && plan.round == 0 && !plan.is_foreign())
    return "--spin is for an open loop, rounds, or servers that are not netdyno's: a closed loop has no schedule to "
           "wait for";
  if (plan.spin == Spin::on && plan.poll_every > 0) return "--spin on and --look-every: leave one of them out";
  if (plan.write_due == WriteDue::joined && plan.write_mode == WriteMode::split)
    return "--write-due joined and --write-mode split: leave one of them out";
  if (open && plan.round > 0) return "--round is for the closed loop; leave --rate or --round out";
  if (plan.requests_per_connection > 0) {
    if (plan.workload == Workload::chat)
      return "--requests-per-connection needs replies, and chat has none: each message goes to every client";
    if (plan.depth > plan.requests_per_connection)
      return "--depth: a connection cannot have more in flight than --requests-per-connection";
  }
  if (plan.connects_when_due && (!open || !plan.may_reconnect() || plan.busy_connections > 0))
    return "--connect-rate when-due is for an open loop in which the server may close connections (http://, --send, "
           "--reconnect or --requests-per-connection), without --busy-connections";
  if (plan.reconnects && (!speaks_http(plan.workload) || plan.is_foreign()))
    return "--reconnect is for --workload http and web; http:// and --send always reconnect";
  if (length_of(raw.rates.steps) > 0 && line.given("--duration"))
    return "--rate says how long its steps last; leave --duration out";
  if (plan.count > 0 && plan.workload == Workload::chat)
    return "--count needs replies, and chat has none: each message goes to every client";
  if (plan.round > 0 && plan.poll_every > 0) return "--look-every and --round: leave one of them out";
  if (plan.size < smallest_message(plan))
    return "--size: a " + std::string{to_string(plan.workload)} + " message that identifies itself has at least " +
           std::to_string(smallest_message(plan)) + " bytes";
  if (plan.workload == Workload::http && plan.size > max_target)
    return "--size: an http request target has at most " + std::to_string(max_target) + " bytes";
  const bool asks_for_size = plan.workload == Workload::web || plan.workload == Workload::grpc;
  if (asks_for_size && plan.size > most_of_a_web_reply)
    return fmt::format("--size: a reply of {} has at most 1 MiB", netdyno::to_string(plan.workload));
  if (auto why = tls_contradiction(line, plan.tls); !why.empty()) return why;
  if (carries_messages(plan.url))
    if (auto why = message_contradiction(plan); !why.empty()) return why;
  if (!plan.unix_socket.empty() && plan.url.transport != "tcp") return "--unix-socket is for tcp:// and http://";
  if (plan.url.port == 0) return "url: port 0 cannot be connected to";
  if (plan.duration <= 0) return "--duration must be longer than 0";
  if (plan.timeout <= 0) return "--timeout must be longer than 0";
  if (plan.connect_timeout <= 0) return "--connect-timeout must be longer than 0";
  if (plan.threads > plan.connections) return "--threads: more threads than connections";
  if (auto why = share_contradiction(plan); !why.empty()) return why;
  if (auto why = busy_contradiction(plan); !why.empty()) return why;
  if (raw.service_time > std::chrono::seconds{10}) return "--service-time is at most 10s";
  const bool asks_for_time = plan.workload == Workload::rpc || asks_for_size;
  if (raw.service_time.count() > 0 && !asks_for_time) return "--service-time is for --workload rpc, web and grpc";
  if (line.given("--service-kind") && !asks_for_size) return "--service-kind is for --workload web and grpc";
  if (raw.slow_request_time > std::chrono::seconds{10}) return "--slow-request-time is at most 10s";
  if (plan.slow_requests > 0 && !asks_for_time) return "--slow-requests is for --workload rpc, web and grpc";
  if ((plan.slow_requests > 0) != (raw.slow_request_time.count() > 0))
    return "--slow-requests and --slow-request-time go together";
  if (plan.slow_readers > 0 && plan.workload != Workload::chat) return "--slow-readers is for --workload chat";
  if (plan.slow_readers > 0 && (plan.tls.on || plan.websocket))
    return "--slow-readers is for tcp; leave it out over TLS and WebSocket";
  if (plan.websocket && plan.workload != Workload::echo && plan.workload != Workload::chat)
    return "--workload: ws:// carries echo and chat; want one of them";
  if (plan.websocket && plan.write_mode == WriteMode::split)
    return "--write-mode split is for tcp; over ws:// a message leaves whole";
  if (plan.workload == Workload::grpc && plan.write_mode == WriteMode::split)
    return "--write-mode split: a message of grpc leaves whole";
  if (plan.slow_readers >= plan.connections)
    return "--slow-readers: some clients must send; want fewer than --connections";
  const bool timed_by_others =
      plan.workload == Workload::chat && plan.audience == Audience::others && !plan.is_write_only();
  const std::uint64_t speakers = plan.speakers();
  const std::uint64_t threads = std::uint64_t{plan.threads} * plan.share.count;
  if (timed_by_others && speakers < 2 * threads)
    return "chat to others is timed by a second connection of the same thread: --connections (without --slow-readers) "
           "must be at least twice --threads, those of all parts";
  if (speakers < threads) return "--slow-readers: every thread needs a connection that talks";
  if (plan.events_fd >= 0 && fcntl(plan.events_fd, F_GETFD) < 0)
    return "--events-fd: descriptor " + std::to_string(plan.events_fd) + " is not open";
  return {};
}

}  // namespace

bool carries_messages(const Url& url) { return url.transport != "tcp"; }

std::string address_of(const LoadPlan& plan) {
  std::string text = format_url(plan.url);
  if (plan.tls.on) text.replace(0, text.find("://"), "tls");
  if (plan.websocket) text = (plan.tls.on ? "wss" : "ws") + text.substr(text.find("://")) + plan.websocket->target;
  if (plan.http) {
    text = (plan.tls.on ? "https" : "http") + text.substr(text.find("://")) + plan.http->targets.front();
    if (plan.http->targets.size() > 1) text += fmt::format(" and {} more", plan.http->targets.size() - 1);
  }
  return plan.unix_socket.empty() ? text : text + " by " + plan.unix_socket;
}

LoadPlan own_part(LoadPlan plan) {
  if (plan.share.count == 1) return plan;
  std::uint32_t own = 0, own_speakers = 0;
  for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
    own += make_thread_share(plan, thread).size();
    own_speakers += make_thread_share(plan, thread).select_speakers(plan).size();
  }
  const double part = static_cast<double>(own_speakers) / plan.speakers();
  if (plan.rate_hz) *plan.rate_hz *= part;
  for (RateStep& step : plan.steps) {
    step.from_hz *= part;
    step.to_hz *= part;
  }
  plan.connections = own;
  if (plan.busy_connections > 0) plan.busy_connections = own_speakers;
  return plan;
}

std::string_view to_string(Arrivals value) { return find_name(arrivals, value); }
std::string_view to_string(Spin value) { return find_name(spins, value); }
std::string_view to_string(WriteDue value) { return find_name(write_dues, value); }

namespace {

void add_options(CommandLine& line, RawPlan& raw) {
  add_load_options(line, raw);
  add_connection_options(line, raw.plan);
  add_other_options(line, raw);
}

/// Rates over all connections, and steps are the window.
void settle_rates(RawPlan& raw) {
  if (raw.rate_hz <= 0) return;
  LoadPlan& plan = raw.plan;
  const double times = raw.rates.per_connection ? plan.speakers() : 1;
  plan.rate_hz = raw.rate_hz * times;
  const Nanos length = length_of(raw.rates.steps);
  if (length == 0) return;
  plan.duration = length;
  for (const RateStep& step : raw.rates.steps)
    plan.steps.push_back({step.from_hz * times, step.to_hz * times, step.length});
}

LoadPlan parse(CommandLine& line, RawPlan& raw, const std::set<Workload>& spoken, bool may_be_foreign, int argc,
               const char* const* argv) {
  LoadPlan& plan = raw.plan;
  const std::string& program = line.program();
  line.parse(argc, argv);

  if (!spoken.contains(plan.workload))
    usage_error(program, fmt::format("--workload: {} is not supported; want {}", netdyno::to_string(plan.workload),
                                     netdyno::to_string(*spoken.begin())));
  if (raw.rate_hz > 0 && !line.given("--arrivals")) plan.arrivals = Arrivals::constant;
  if (may_be_foreign)
    if (const auto why = settle_foreign(raw, line); !why.empty()) usage_error(program, why);
  if (const auto why = contradiction(raw, line); !why.empty()) usage_error(program, why);
  settle_rates(raw);
  if (plan.count > 0 && !line.given("--warmup")) plan.warmup = 0;
  if (plan.count > 0 && plan.steps.empty() && !line.given("--duration")) plan.duration = longest_count;
  const bool is_limited = plan.workload == Workload::web || line.given("--depth");  // protocol/WIRE.md, Web
  plan.flight_is_limited = plan.is_foreign() || (plan.rate_hz && is_limited);
  plan.service_us = microseconds_of(raw.service_time);
  plan.slow_request_us = microseconds_of(raw.slow_request_time);
  return plan;
}

template <typename Value>
std::set<Value> all_of(const std::map<std::string, Value>& choices) {
  std::set<Value> values;
  for (const auto& [name, value] : choices) values.insert(value);
  return values;
}

}  // namespace

/// True for an open loop that leaves a thread time: it has nothing better to do than to ask the kernel at each read.
/// Not for a chat, whose answers are many, nor with --look-every, whose interval is meant to be in the times.
bool LoadPlan::ends_times_with_stamps() const {
  constexpr double most_hz =
      20'000;  // of a thread; a read that asks takes some 0.3 us longer (docs/adr/kernel-clock.md)
  if (!rate_hz || workload == Workload::chat || poll_every > 0) return false;
  const double replies_hz = steps.empty() ? *rate_hz : fastest_hz(steps);
  return replies_hz * static_cast<double>(std::max<std::size_t>(1, chunks)) <= most_hz * threads * share.count;
}

LoadPlan parse_load_plan(int argc, const char* const* argv) {
  RawPlan raw{LoadPlan{}};
  CommandLine line{description, argv[0]};
  add_any_url(line, raw.plan);
  add_options(line, raw);
  add_foreign_options(line, raw);
  add_tls_options(line, raw.plan.tls);
  line.add_flag("--check-plan", raw.plan.is_only_checked,
                "make no load; exit with 0 if these options go together, else with 2");
  line.add_version("netdyno-load " NETDYNO_VERSION);
  line.add_completion();
  return parse(line, raw, all_of(workloads()), true, argc, argv);
}

LoadPlan parse_load_plan(int argc, const char* const* argv, const PlanSubset& subset) {
  RawPlan raw{subset.defaults};
  CommandLine line{subset.description, argv[0]};
  add_url(line, "url", raw.plan.url, subset.transports, "where the server listens, e.g. tcp://127.0.0.1:7000")
      .required();
  add_options(line, raw);
  line.keep_only(subset.options);
  subset.add_own(line);
  return parse(line, raw, subset.workloads, false, argc, argv);
}

}  // namespace netdyno::load
