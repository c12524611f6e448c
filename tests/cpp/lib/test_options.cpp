#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "lib/server/options.hpp"

namespace netdyno {
namespace {

using std::chrono::milliseconds;
using testing::ExitedWithCode;

ServerOptions parse(std::initializer_list<const char*> arguments, ThreadModel threads = ThreadModel::any) {
  std::vector<const char*> argv{"./path/to/a-server"};
  argv.insert(argv.end(), arguments);
  return parse_server_options(static_cast<int>(argv.size()), argv.data(), threads);
}

TEST(Options, DefaultsAreLoopbackAndEcho) {
  const ServerOptions options = parse({});
  EXPECT_EQ(options.listen.host, "127.0.0.1");
  EXPECT_EQ(options.listen.port, 0);
  EXPECT_EQ(options.workload, Workload::echo);
  EXPECT_EQ(options.threads, 1);
  EXPECT_TRUE(options.nodelay);
  EXPECT_EQ(options.max_frame, 1U << 20);
}

ServerOptions parse_udp(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv{"a-server"};
  argv.insert(argv.end(), arguments);
  return parse_server_options(static_cast<int>(argv.size()), argv.data(), ThreadModel::any, "udp");
}

TEST(Options, OfATransportWithoutConnections) {
  EXPECT_EQ(parse_udp({}).listen.transport, "udp");
  EXPECT_EQ(parse_udp({}).peers, 16384U);
  const ServerOptions options =
      parse_udp({"--listen", "udp://[::1]:7", "--peers", "5", "--peer-timeout", "2s", "--socket-buffer", "1MiB"});
  EXPECT_EQ(format_url(options.listen), "udp://[::1]:7");
  EXPECT_EQ(options.peers, 5U);
  EXPECT_EQ(options.peer_timeout, std::chrono::seconds{2});
  EXPECT_EQ(options.socket_buffer, 1U << 20);
}

TEST(Options, EachTransportRefusesWhatMeansNothingToIt) {
  for (const char* option : {"--backlog", "--nodelay", "--read-buffer", "--write-mode"})
    EXPECT_EXIT(parse_udp({option, "1"}), ExitedWithCode(2), option);
  for (const char* option : {"--peers", "--peer-timeout", "--socket-buffer"})
    EXPECT_EXIT(parse({option, "1s"}), ExitedWithCode(2), option);
  EXPECT_EXIT(parse_udp({"--listen", "tcp://127.0.0.1:0"}), ExitedWithCode(2), "--listen");
  EXPECT_EXIT(parse_udp({"--workload", "http"}), ExitedWithCode(2), "--workload: udp carries echo, rpc and chat");
  EXPECT_EXIT(parse_udp({"--peer-timeout", "0"}), ExitedWithCode(2), "--peer-timeout must be longer");
}

ServerOptions parse_with_pool(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv{"a-server"};
  argv.insert(argv.end(), arguments);
  return parse_server_options(static_cast<int>(argv.size()), argv.data(), {ThreadModel::one, Backend::pool});
}

TEST(Options, ABackendIsNamedAndAskedTogether) {
  const ServerOptions options =
      parse_with_pool({"--service-kind", "backend", "--backend", "tcp://[::1]:7", "--pool", "3"});
  EXPECT_EQ(format_url(options.backend), "tcp://[::1]:7");
  EXPECT_EQ(options.pool, 3);
  EXPECT_EQ(parse_with_pool({"--service-kind", "backend", "--backend", "tcp://a:7"}).pool, 10);
  EXPECT_EXIT(parse_with_pool({"--service-kind", "backend"}), ExitedWithCode(2), "needs --backend tcp://HOST:PORT");
  EXPECT_EXIT(parse_with_pool({"--backend", "tcp://a:7"}), ExitedWithCode(2), "--backend needs --service-kind backend");
  EXPECT_EXIT(parse_with_pool({"--pool", "0"}), ExitedWithCode(2), "--pool");
}

TEST(Options, AServerWithoutAPoolRefusesABackend) {
  EXPECT_EXIT(parse({"--service-kind", "backend"}), ExitedWithCode(2), "a-server has no pool of connections");
  EXPECT_EXIT(parse({"--pool", "3"}), ExitedWithCode(2), "--pool");
}

ServerOptions parse_multicast(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv{"a-server"};
  argv.insert(argv.end(), arguments);
  return parse_server_options(static_cast<int>(argv.size()), argv.data(), ThreadModel::one, "multicast");
}

TEST(Options, AGroupHasItsSenderInIt) {
  EXPECT_EQ(format_url(parse_multicast({}).listen), "multicast://239.255.0.1:0?interface=lo");
  EXPECT_EQ(parse_multicast({}).audience, Audience::all);
  EXPECT_EQ(parse_multicast({"--audience", "all"}).audience, Audience::all);
  EXPECT_EXIT(parse_multicast({"--audience", "others"}), ExitedWithCode(2), "--audience: a group has its sender in it");
}

TEST(Options, EveryValueArrives) {
  const ServerOptions options = parse({"--listen",
                                       "tcp://[::1]:7",
                                       "--workload=rpc",
                                       "--threads",
                                       "3",
                                       "--backlog",
                                       "9",
                                       "--nodelay",
                                       "off",
                                       "--read-buffer",
                                       "1KiB",
                                       "--write-mode",
                                       "split",
                                       "--audience",
                                       "all",
                                       "--deliveries",
                                       "single",
                                       "--service-time",
                                       "1.5ms",
                                       "--service-kind",
                                       "cpu",
                                       "--max-frame",
                                       "2MiB",
                                       "--outbox-limit",
                                       "3GiB"});
  EXPECT_EQ(format_url(options.listen), "tcp://[::1]:7");
  EXPECT_EQ(options.workload, Workload::rpc);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.backlog, 9);
  EXPECT_FALSE(options.nodelay);
  EXPECT_EQ(options.read_buffer, 1024U);
  EXPECT_EQ(options.write_mode, WriteMode::split);
  EXPECT_EQ(options.audience, Audience::all);
  EXPECT_EQ(options.deliveries, DeliveryMode::single);
  EXPECT_EQ(options.delivery_mode(), DeliveryMode::joined) << "a reply is no delivery";
  EXPECT_EQ(parse({"--workload", "chat", "--deliveries", "single"}).delivery_mode(), DeliveryMode::single);
  EXPECT_EQ(options.service_time, std::chrono::microseconds{1500});
  EXPECT_EQ(options.service_kind, ServiceKind::cpu);
  EXPECT_EQ(options.max_frame, 2U << 20);
  EXPECT_EQ(options.outbox_limit, 3ULL << 30);
}

TEST(OptionsDeathTest, AMistakeIsOneLineWithTheProgramAndTheOption) {
  EXPECT_EXIT(parse({"--backlog", "none"}), ExitedWithCode(2), "^a-server: .*--backlog.*--help lists the options.\n$");
  EXPECT_EXIT(parse({"--colour"}), ExitedWithCode(2), "^a-server: .*--colour.*\n$");
  EXPECT_EXIT(parse({"--workload", "a\nb"}), ExitedWithCode(2), "^a-server: [^\n]*--workload[^\n]*\n$");
  EXPECT_EXIT(parse({"--nodelay", "on", "--nodelay", "off"}), ExitedWithCode(2), "^a-server: [^\n]*--nodelay[^\n]*\n$");
}

TEST(OptionsDeathTest, ThreadsThatAModelCannotHaveAreRefused) {
  EXPECT_EXIT(parse({"--threads", "2"}, ThreadModel::one), ExitedWithCode(2), "--threads");
  EXPECT_EXIT(parse({"--threads", "2"}, ThreadModel::per_connection), ExitedWithCode(2), "--threads");
  EXPECT_EQ(parse({"--threads", "1"}, ThreadModel::one).threads, 1);
}

TEST(OptionsDeathTest, HelpIsNoMistake) { EXPECT_EXIT(parse({"--help"}), ExitedWithCode(0), "^$"); }

}  // namespace
}  // namespace netdyno
