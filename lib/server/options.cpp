#include "lib/server/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "lib/cli/option_values.hpp"

namespace netdyno {
namespace {

std::string why_not_threads(ThreadModel model, const std::string& program, int threads) {
  if (threads == 1 || model == ThreadModel::any) return {};
  return model == ThreadModel::one ? "--threads: " + program + " runs on exactly one thread"
                                   : "--threads: " + program + " starts a thread per connection; leave --threads out";
}

void add_stream_options(CLI::App& app, ServerOptions& options) {
  app.add_option("--backlog", options.backlog, "listen(2) backlog")->check(CLI::Range(1, 65535));
  add_choice(app, "--nodelay", options.nodelay, {{"on", true}, {"off", false}}, "TCP_NODELAY");
  add_bytes(app, "--read-buffer", options.read_buffer, {1, 1ULL << 30}, "bytes asked for in one read");
  add_choice(app, "--write-mode", options.write_mode, {{"gathered", WriteMode::gathered}, {"split", WriteMode::split}},
             "header and body in one write or two");
}

void add_message_options(CLI::App& app, ServerOptions& options) {
  app.add_option("--peers", options.peers, "clients that may be known at once")->check(CLI::Range(1, 1 << 20));
  add_duration(app, "--peer-timeout", options.peer_timeout, "silence after which a client is forgotten");
  add_bytes(app, "--socket-buffer", options.socket_buffer, {1, 1ULL << 30},
            "SO_RCVBUF and SO_SNDBUF (default: the system's)");
}

/// Where it listens who is not told where.
Url default_listen(const std::string& transport) {
  // A group of the local scope (RFC 2365), on an interface that leads nowhere.
  if (transport == "multicast") return {transport, "239.255.0.1", 0, "interface=lo"};
  return {transport, "127.0.0.1", 0, ""};
}

}  // namespace

ServerOptions parse_server_options(int argc, const char* const* argv, ThreadModel threads, const std::string& transport,
                                   const std::function<void(CLI::App&)>& add_own) {
  ServerOptions options;
  options.listen = default_listen(transport);
  const bool stream = transport == "tcp";
  const bool group = transport == "multicast";
  if (group) options.audience = Audience::all;
  CLI::App app{"netdyno contestant: see protocol/WIRE.md for what it speaks"};
  const std::string program = program_name(argv[0]);
  app.name(program);

  add_url(app, "--listen", options.listen, {transport}, "where to listen; port 0 picks a free one");
  add_choice(app, "--workload", options.workload, workloads(), "application protocol");
  app.add_option("--threads", options.threads, "threads that serve")->check(CLI::Range(1, 1024));
  add_choice(app, "--audience", options.audience, {{"others", Audience::others}, {"all", Audience::all}},
             "who gets a chat message");
  add_duration(app, "--service-time", options.service_time, "service time of an rpc request");
  add_choice(app, "--service-kind", options.service_kind, {{"wait", ServiceKind::wait}, {"cpu", ServiceKind::cpu}},
             "spend the service time waiting or burning CPU");
  add_bytes(app, "--max-frame", options.max_frame, {1, 1ULL << 30}, "longest message accepted");
  add_bytes(app, "--outbox-limit", options.outbox_limit, {1, 1ULL << 40},
            "bytes that may wait for one reader before it is closed");
  if (add_own) add_own(app);
  stream ? add_stream_options(app, options) : add_message_options(app, options);

  parse_or_exit(app, program, argc, argv);
  if (!stream && (options.workload == Workload::lines || options.workload == Workload::http))
    usage_error(program, "--workload: " + transport + " carries echo, rpc and chat; want one of them");
  if (group && options.audience != Audience::all)
    usage_error(program, "--audience: a group has its sender in it, so a chat message goes to all");
  if (options.peer_timeout.count() <= 0) usage_error(program, "--peer-timeout must be longer than 0");
  if (const auto why = why_not_threads(threads, program, options.threads); !why.empty()) usage_error(program, why);
  return options;
}

}  // namespace netdyno
