#include "lib/server/options.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lib/cli/option_values.hpp"
#include "lib/session/tls.hpp"

namespace netdyno {
namespace {

std::string why_not_threads(ThreadModel model, const std::string& program, int threads) {
  if (threads == 1 || model == ThreadModel::any) return {};
  return model == ThreadModel::one ? "--threads: " + program + " runs on exactly one thread"
                                   : "--threads: " + program + " has a thread for each connection; leave --threads out";
}

void add_stream_options(CommandLine& line, ServerOptions& options) {
  line.add_number("--backlog", options.backlog, 1, 65535, "listen(2) backlog");
  add_choice(line, "--nodelay", options.nodelay, {{"on", true}, {"off", false}}, "TCP_NODELAY");
  add_bytes(line, "--read-buffer", options.read_buffer, {1, 1ULL << 30}, "bytes requested in one read");
  add_choice(line, "--write-mode", options.write_mode, {{"gathered", WriteMode::gathered}, {"split", WriteMode::split}},
             "header and body in one write or two");
  line.add_text("--tls", options.tls_file, "serve over TLS, with the certificate and the key in this file (PEM)")
      .type_name("FILE");
}

void add_pool_options(CommandLine& line, ServerOptions& options) {
  add_url(line, "--backend", options.backend, {"tcp", "postgresql"},
          "service kind backend: the server that each request asks");
  line.add_number("--pool", options.pool, 1, 16384, "service kind backend: connections to it");
}

/// Empty where the backend and its pool are there, or not asked for.
std::string why_not_backend(const ServerOptions& options, Backend offered, const std::string& program) {
  const bool asks = options.service_kind == ServiceKind::backend;
  if (asks && offered == Backend::none)
    return "--service-kind backend: " + program + " has no pool of connections to a backend";
  if (asks && options.backend.port == 0) return "--service-kind backend needs --backend tcp://HOST:PORT";
  if (!asks && options.backend.port != 0) return "--backend needs --service-kind backend";
  return {};
}

void add_message_options(CommandLine& line, ServerOptions& options) {
  line.add_number("--peers", options.peers, std::size_t{1}, std::size_t{1} << 20, "clients that may be known at once");
  add_duration(line, "--peer-timeout", options.peer_timeout, "silence after which a client is forgotten");
  add_bytes(line, "--socket-buffer", options.socket_buffer, {1, 1ULL << 30},
            "SO_RCVBUF and SO_SNDBUF (default: the system's)");
}

std::string_view format_kind(ServiceKind kind) {
  if (kind == ServiceKind::backend) return "backend";
  return kind == ServiceKind::cpu ? "cpu" : "wait";
}

/// The address that a server listens at by default.
Url default_listen(const std::string& transport) {
  // A group of the local scope (RFC 2365), on an interface that leads nowhere.
  if (transport == "multicast") return {transport, "239.255.0.1", 0, "interface=lo"};
  return {transport, "127.0.0.1", 0, ""};
}

}  // namespace

ServerOptions parse_server_options(int argc, const char* const* argv, Offered offered, const std::string& transport,
                                   const std::function<void(CommandLine&)>& add_own) {
  ServerOptions options;
  options.listen = default_listen(transport);
  const bool stream = transport == "tcp";
  const bool group = transport == "multicast";
  if (group) options.audience = Audience::all;
  CommandLine line{"netdyno contestant: see protocol/WIRE.md for what it speaks", argv[0]};
  const std::string& program = line.program();

  add_url(line, "--listen", options.listen, {transport}, "where to listen; port 0 picks a free one");
  add_choice(line, "--workload", options.workload, served_workloads(), "application protocol");
  line.add_number("--threads", options.threads, 1, 1024, "threads that serve");
  add_choice(line, "--audience", options.audience, {{"others", Audience::others}, {"all", Audience::all}},
             "who receives a chat message");
  if (transport != "zmq+tcp")
    add_choice(line, "--deliveries", options.deliveries,
               {{"joined", DeliveryMode::joined}, {"single", DeliveryMode::single}},
               "what waits for a recipient of chat leaves in one system call, or each message in its own");
  add_duration(line, "--service-time", options.service_time, "service time of a request of rpc or http");
  add_choice(line, "--service-kind", options.service_kind,
             {{"wait", ServiceKind::wait}, {"cpu", ServiceKind::cpu}, {"backend", ServiceKind::backend}},
             "spend the service time waiting, burning CPU, or asking a backend for it");
  if (offered.backend == Backend::pool) add_pool_options(line, options);
  if (offered.busy_poll == BusyPoll::possible)
    add_duration(line, "--busy-poll", options.busy_poll, "how long a loop asks the kernel for events before it sleeps");
  add_bytes(line, "--max-frame", options.max_frame, {1, 1ULL << 30}, "longest message accepted");
  add_bytes(line, "--outbox-limit", options.outbox_limit, {1, 1ULL << 40},
            "bytes that may wait for one reader before it is closed");
  if (add_own) add_own(line);
  stream ? add_stream_options(line, options) : add_message_options(line, options);

  line.parse(argc, argv);
  if (!stream && (options.workload == Workload::lines || speaks_http(options.workload)))
    usage_error(program, "--workload: " + transport + " carries echo, rpc and chat; want one of them");
  if (group && options.audience != Audience::all)
    usage_error(program, "--audience: a group has its sender in it, so a chat message goes to all");
  if (!options.tls_file.empty() && options.workload == Workload::chat)
    usage_error(program, "--tls: a message of chat would be encrypted for each recipient, which no server here does");
  if (options.peer_timeout.count() <= 0) usage_error(program, "--peer-timeout must be longer than 0");
  if (const auto why = why_not_threads(offered.threads, program, options.threads); !why.empty())
    usage_error(program, why);
  if (const auto why = why_not_backend(options, offered.backend, program); !why.empty()) usage_error(program, why);
  if (!options.tls_file.empty()) options.tls = load_tls_layer(options.tls_file);
  return options;
}

std::string format_resolved(const ServerOptions& options) {
  nlohmann::ordered_json resolved{
      {"host", options.listen.host},
      {"port", options.listen.port},
      {"workload", to_string(options.workload)},
      {"threads", options.threads},
      {"backlog", options.backlog},
      {"nodelay", options.nodelay},
      {"read_buffer", options.read_buffer},
      {"write_mode", options.write_mode == WriteMode::split ? "split" : "gathered"},
      {"audience", options.audience == Audience::all ? "all" : "others"},
      {"deliveries", options.deliveries == DeliveryMode::single ? "single" : "joined"},
      {"service_time_ns", options.service_time.count()},
      {"service_kind", format_kind(options.service_kind)},
      {"max_frame", options.max_frame},
      {"outbox_limit", options.outbox_limit},
  };
  if (options.service_kind == ServiceKind::backend) {
    resolved["backend_host"] = options.backend.host;
    resolved["backend_port"] = options.backend.port;
    resolved["pool"] = options.pool;
  }
  if (!options.tls_file.empty()) resolved["tls"] = options.tls_file;
  return resolved.dump();
}

}  // namespace netdyno
