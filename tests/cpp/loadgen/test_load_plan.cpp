#include <gtest/gtest.h>
#include <unistd.h>

#include "loadgen/plan/plan.hpp"

namespace netdyno::load {
namespace {

LoadPlan parse_all(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/netdyno-load");
  return parse_load_plan(static_cast<int>(arguments.size()), arguments.data());
}

LoadPlan parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tcp://127.0.0.1:7000");
  return parse_all(std::move(arguments));
}

TEST(LoadPlan, HasDefaults) {
  const LoadPlan plan = parse({});
  EXPECT_EQ(plan.url.port, 7000);
  EXPECT_EQ(plan.workload, Workload::echo);
  EXPECT_EQ(plan.arrivals, Arrivals::closed);
  EXPECT_FALSE(plan.rate_hz);
  EXPECT_FALSE(plan.connect_rate_hz);
  EXPECT_EQ(plan.requests_per_connection, 0U);
  EXPECT_EQ(plan.size, 31U);
  EXPECT_EQ(plan.duration, 10 * one_second);
}

TEST(LoadPlan, ARateMakesAnOpenLoop) {
  const LoadPlan plan = parse({"-c", "100", "--rate", "1000/conn"});
  EXPECT_EQ(plan.arrivals, Arrivals::constant);
  EXPECT_EQ(plan.rate_hz, 100'000);
  EXPECT_EQ(parse({"--rate", "2.5", "-c", "100"}).rate_hz, 2.5);
  EXPECT_EQ(parse({"--rate", "10", "--arrivals", "poisson"}).arrivals, Arrivals::poisson);
}

TEST(LoadPlan, AConnectionOfWebHasOneRequestAtATime) {
  for (const auto& [workload, is_limited] : {std::pair{"web", true}, std::pair{"http", false}}) {
    const auto plan = parse({"--workload", workload, "--rate", "300"});
    EXPECT_EQ(plan.flight_is_limited, is_limited) << workload;
    EXPECT_EQ(plan.depth, 1U);
  }
}

TEST(LoadPlan, StepsAreTheWindow) {
  const LoadPlan plan = parse({"-c", "10", "--rate", "10,20..40/conn/5s"});
  EXPECT_EQ(plan.steps, (std::vector<RateStep>{{100, 100, 5 * one_second}, {200, 400, 5 * one_second}}));
  EXPECT_EQ(plan.duration, 10 * one_second);
  EXPECT_EQ(plan.rate_hz, 200);
  EXPECT_EQ(plan.arrivals, Arrivals::constant);
  EXPECT_TRUE(parse({"--rate", "20k"}).steps.empty());
  EXPECT_EQ(parse({"--rate", "20k", "--timeout", "1s", "--duration", "9s"}).last_patience(), one_second);
  EXPECT_EQ(parse({"--rate", "20,30/5s", "--timeout", "1s"}).last_patience(), 10 * one_second);
  EXPECT_EQ(parse({"--rate", "20,30/1s", "--timeout", "5s"}).last_patience(), 5 * one_second);
}

TEST(LoadPlan, AnOpenLoopThatLeavesTimeEndsItsTimesWithTheKernelsStamps) {
  const auto ends = [](std::vector<const char*> arguments) {
    return parse(std::move(arguments)).ends_times_with_stamps();
  };
  EXPECT_TRUE(ends({"--rate", "20k"}));
  EXPECT_TRUE(ends({"--rate", "40k", "-c", "2", "--threads", "2"}));
  EXPECT_TRUE(ends({"--rate", "40k", "-c", "2", "--share", "1/2"}));
  EXPECT_FALSE(ends({"--rate", "20001"}));
  EXPECT_FALSE(ends({"--rate", "100,30k/1s"})) << "in one of its steps it does not";
  EXPECT_FALSE(ends({})) << "a closed loop";
  EXPECT_FALSE(ends({"--round", "10ms"}));
  EXPECT_FALSE(ends({"--rate", "100", "--workload", "chat", "-c", "2"}));
  EXPECT_FALSE(ends({"--rate", "100", "--look-every", "1ms"}));
}

TEST(LoadPlan, PathsAreTakenInTurnByTheirWeights) {
  const auto http = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "http://127.0.0.1:8080");
    return *parse_all(std::move(arguments)).http;
  };
  EXPECT_EQ(http({}).targets, std::vector<std::string>{"/"});
  const HttpRequest equal = http({"--path", "/a=2", "--path", "/b?c=3", "--path", "/d=e=2"});
  EXPECT_EQ(equal.targets, (std::vector<std::string>{"/a", "/b?c=3", "/d=e"}));
  EXPECT_EQ(equal.turns, (std::vector<std::uint32_t>{0, 2, 1, 0, 2}));
  const HttpRequest weighted = http({"--path", "/a=30", "--path", "/b?c=3 =10"});
  EXPECT_EQ(weighted.targets, (std::vector<std::string>{"/a", "/b?c=3"}));
  EXPECT_EQ(weighted.turns, (std::vector<std::uint32_t>{0, 0, 1, 0}));
  EXPECT_TRUE(http({"--path", "/a=7", "--path", "/b=7"}).turns.empty()) << "each in turn";
}

TEST(LoadPlan, ACountNeedsNoTime) {
  EXPECT_EQ(parse({"-n", "500"}).count, 500U);
  EXPECT_EQ(parse({"-n", "500"}).warmup, 0);
  EXPECT_EQ(parse({"-n", "500"}).duration, 3600 * one_second);
  EXPECT_EQ(parse({"--count", "500", "--duration", "5s", "--warmup", "1s"}).duration, 5 * one_second);
  EXPECT_EQ(parse({"--count", "500", "--duration", "5s", "--warmup", "1s"}).warmup, one_second);
}

TEST(LoadPlan, APartHasItsShareOfConnectionsAndRates) {
  EXPECT_EQ(parse({}).share.count, 1U);
  const LoadPlan plan = parse({"-c", "10", "--threads", "2", "--rate", "100,200/1s", "--share", "2/3"});
  EXPECT_EQ(plan.share.index, 1U);
  EXPECT_EQ(plan.share.count, 3U);
  EXPECT_EQ(plan.connections, 10U) << "of all together";
  const LoadPlan own = own_part(plan);  // threads 2 and 3 of six: connections 2, 8, 3 and 9
  EXPECT_EQ(own.connections, 4U);
  EXPECT_DOUBLE_EQ(*own.rate_hz, 60);
  EXPECT_DOUBLE_EQ(own.steps[1].from_hz, 80);
}

TEST(LoadPlan, OnlyTheBusyConnectionsHaveARate) {
  EXPECT_EQ(parse({"-c", "100"}).speakers(), 100U);
  const LoadPlan plan = parse({"-c", "100", "--busy-connections", "10", "--threads", "2", "--rate", "5/conn"});
  EXPECT_EQ(plan.connections, 100U);
  EXPECT_EQ(plan.speakers(), 10U);
  EXPECT_EQ(plan.rate_hz, 50);
  EXPECT_EQ(parse({"-c", "1000000", "--busy-connections", "10", "--rate", "1e6/conn"}).rate_hz, 1e7);
  EXPECT_EQ(parse({"-c", "10", "--busy-connections", "10"}).speakers(), 10U);
}

TEST(LoadPlan, APartHasItsShareOfTheBusyConnections) {
  const LoadPlan own =
      own_part(parse({"-c", "100", "--busy-connections", "4", "--rate", "100", "--share", "1/3"}));  // 0, 3, ... 99
  EXPECT_EQ(own.connections, 34U);
  EXPECT_EQ(own.speakers(), 2U);
  EXPECT_DOUBLE_EQ(*own.rate_hz, 50);
}

TEST(LoadPlan, TakesWhatAMachineMayDo) {
  EXPECT_EQ(parse({"--rate", "0.001"}).rate_hz, 0.001);
  EXPECT_EQ(parse({"--rate", "1e7"}).rate_hz, 1e7);
  EXPECT_EQ(parse({"--rate", "10/conn", "-c", "1000000"}).rate_hz, 1e7);
  EXPECT_EQ(parse({"--connect-rate", "0.1", "-c", "360"}).connect_rate_hz, 0.1);
  EXPECT_EQ(parse({"--duration", "1440m"}).duration, 86'400 * one_second);
}

TEST(LoadPlan, TakesEveryOption) {
  const LoadPlan plan = parse({"--workload",
                               "rpc",
                               "-c",
                               "8",
                               "--depth",
                               "4",
                               "--round",
                               "50ms",
                               "--slow-requests",
                               "0.01",
                               "--slow-request-time",
                               "50ms",
                               "--linger",
                               "20ms",
                               "--size",
                               "1KiB",
                               "--duration",
                               "1.5s",
                               "--warmup",
                               "0",
                               "--connect-rate",
                               "50",
                               "--requests-per-connection",
                               "5",
                               "--connect-timeout",
                               "2s",
                               "--timeout",
                               "3s",
                               "--threads",
                               "2",
                               "--source-ips",
                               "127.0.0.2,127.0.0.3",
                               "--seed",
                               "9",
                               "--json",
                               "a",
                               "--hdr",
                               "b",
                               "--audience",
                               "all",
                               "--service-time",
                               "5ms",
                               "--nodelay",
                               "off",
                               "--write-mode",
                               "split",
                               "--turns",
                               "--events-fd",
                               "2"});
  EXPECT_EQ(plan.depth, 4U);
  EXPECT_EQ(plan.round, one_second / 20);
  EXPECT_EQ(plan.linger, one_second / 50);
  EXPECT_EQ(plan.size, 1024U);
  EXPECT_EQ(plan.duration, 1'500'000'000);
  EXPECT_EQ(plan.warmup, 0);
  EXPECT_EQ(plan.connect_rate_hz, 50);
  EXPECT_EQ(plan.requests_per_connection, 5U);
  EXPECT_EQ(plan.connect_timeout, 2 * one_second);
  EXPECT_EQ(plan.timeout, 3 * one_second);
  EXPECT_EQ(plan.source_ips, (std::vector<std::string>{"127.0.0.2", "127.0.0.3"}));
  EXPECT_EQ(plan.seed, 9U);
  EXPECT_EQ(plan.audience, Audience::all);
  EXPECT_EQ(plan.service_us, 5000);
  EXPECT_EQ(plan.slow_requests, 0.01);
  EXPECT_EQ(plan.slow_request_us, 50'000);
  EXPECT_TRUE(plan.turns);
  EXPECT_FALSE(plan.nodelay);
  EXPECT_EQ(plan.write_mode, WriteMode::split);
  EXPECT_EQ(plan.events_fd, 2);
  EXPECT_EQ(plan.json_file, "a");
  EXPECT_EQ(plan.hdr_file, "b");
}

struct Mistake {
  std::vector<const char*> arguments;
  const char* words;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, EndWithExit2AndOneLine) {
  // One line: nothing but the newline follows the hint at --help.
  const std::string line = std::string{"^netdyno-load: .*"} + GetParam().words + ".*help lists the options.\n$";
  EXPECT_EXIT(parse(GetParam().arguments), testing::ExitedWithCode(2), line);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Mistakes,
    testing::Values(
        Mistake{{"--frobnicate"}, "frobnicate"}, Mistake{{"--workload", "ftp"}, "echo.grpc.http.lines"},
        Mistake{{"--rate", "fast"}, "no rate"}, Mistake{{"--rate", "-5"}, "no rate"},
        Mistake{{"--rate", "0"}, "no rate"}, Mistake{{"--rate", "10/connection"}, "no rate"},
        Mistake{{"--rate", "1e-300"}, "no rate; want .* 0.001 to 1e.07"}, Mistake{{"--rate", "0.0009"}, "no rate"},
        Mistake{{"--rate", "1e9"}, "no rate"}, Mistake{{"--rate", "inf"}, "no rate"},
        Mistake{{"--rate", "nan"}, "no rate"},
        Mistake{{"--rate", "11/conn", "-c", "1000000"}, "1.1e.07 messages a second in all; at most 1e.07"},
        Mistake{{"--rate", "1k..2k"}, "no rate; want .*or a ramp"},
        Mistake{{"--rate", "1k..2k/5s", "--duration", "5s"}, "leave --duration out"},
        Mistake{{"--rate", "1k/1440m,2k/1s"}, "steps take at most 1440m"},
        Mistake{{"--rate", "1..11/conn/1s", "-c", "1000000"}, "1.1e.07 messages a second in all"},
        Mistake{{"-n", "5", "--workload", "chat", "-c", "2"}, "--count needs replies"},
        Mistake{{"-n", "0"}, "'0' is no whole number from 1 to"}, Mistake{{"--path", "/"}, "--path is for http://..."},
        Mistake{{"--repeatable"}, "--repeatable is for http://... and --send"}, Mistake{{"-n", "some"}, "whole number"},
        Mistake{{"--connect-rate", "1e-9"}, "neither connections a second"},
        Mistake{{"--connect-rate", "0.1", "-c", "361"}, "361 connections at 0.1 a second take 60m; at most 60m"},
        Mistake{{"--duration", "1441m"}, "--duration: at most 1440m"},
        Mistake{{"--warmup", "9e18ns"}, "--warmup: at most"}, Mistake{{"--timeout", "9e18ns"}, "--timeout: at most"},
        Mistake{{"--linger", "9e18ns"}, "--linger: at most"}, Mistake{{"--round", "9e18ns"}, "--round: at most"},
        Mistake{{"--look-every", "9e18ns"}, "--look-every: at most"},
        Mistake{{"--connect-timeout", "9e18ns"}, "--connect-timeout: at most"},
        Mistake{{"--arrivals", "poisson"}, "needs --rate"},
        Mistake{{"--arrivals", "closed", "--rate", "5"}, "leave --rate out"},
        Mistake{{"--slow-requests", "1%", "--workload", "rpc"}, "'1%' is no share below 1"},
        Mistake{{"--slow-requests", "1", "--workload", "rpc"}, "'1' is no share below 1"},
        Mistake{{"--slow-requests", "0.1", "--slow-request-time", "1ms"},
                "--slow-requests is for --workload rpc, web and grpc"},
        Mistake{{"--slow-requests", "0.1", "--workload", "rpc"}, "go together"},
        Mistake{{"--slow-request-time", "1ms", "--workload", "rpc"}, "go together"},
        Mistake{{"--slow-request-time", "11s", "--workload", "rpc"}, "at most 10s"},
        Mistake{{"--busy-connections", "0"}, "busy-connections"},
        Mistake{{"--busy-connections", "6", "-c", "5"}, "want at most as many as --connections"},
        Mistake{{"--busy-connections", "2", "-c", "5", "--threads", "3"}, "every thread needs a connection that sends"},
        Mistake{{"--busy-connections", "1", "-c", "5", "--share", "1/2"}, "every thread needs a connection that sends"},
        Mistake{{"--busy-connections", "2", "-c", "5", "--workload", "chat"}, "in a chat every connection receives"},
        Mistake{{"--busy-connections", "2", "-c", "5", "--requests-per-connection", "1"}, "idle connections stay open"},
        Mistake{{"--slow-readers", "1", "-c", "5"}, "--slow-readers is for --workload chat"},
        Mistake{{"--slow-readers", "5", "-c", "5", "--workload", "chat"}, "some clients must send"},
        Mistake{{"--slow-readers", "4", "-c", "5", "--workload", "chat"}, "at least twice"},
        Mistake{{"--start", "soon"}, "at-once.together"},
        Mistake{{"--start", "at-once"}, "--start at-once is for --workload chat"},
        Mistake{{"--start", "at-once", "--workload", "chat", "-c", "2", "--rate", "5"}, "a closed loop without rounds"},
        Mistake{{"--start", "at-once", "--workload", "chat", "-c", "2", "--round", "1s"}, "closed loop without rounds"},
        Mistake{{"--start", "at-once", "--workload", "chat", "-c", "5", "--slow-readers", "1"}, "leave --slow-readers"},
        Mistake{{"--turns", "--start", "at-once", "--workload", "chat", "-c", "2"}, "leave --start at-once out"},
        Mistake{{"--messages", "5"}, "--messages is for --workload chat"},
        Mistake{{"--every", "5ms", "--workload", "chat", "-c", "2"}, "--every goes with --messages"},
        Mistake{{"--messages", "5", "--workload", "chat", "-c", "2", "--threads", "2"}, "one thread makes the burst"},
        Mistake{{"--messages", "5", "--workload", "chat", "--rate", "5"}, "--rate: the clients of --messages read"},
        Mistake{{"--messages", "5", "--workload", "chat", "--duration", "5s"}, "--duration: the clients of --messages"},
        Mistake{{"--messages", "5", "--workload", "chat", "--csv", "x"}, "--csv: the clients of --messages"},
        Mistake{{"--messages", "0", "--workload", "chat"}, "messages"},
        Mistake{{"--look-every", "5ms", "--rate", "5", "--spin", "on"}, "leave one of them out"},
        Mistake{{"--write-due", "joined", "--write-mode", "split"}, "leave one of them out"},
        Mistake{{"--write-due", "now"}, "each.joined"},
        Mistake{{"--spin", "off"}, "--spin is for an open loop, rounds"},
        Mistake{{"--spin", "sometimes", "--rate", "5"}, "auto.off.on"},
        Mistake{{"--look-every", "5ms", "--round", "50ms"}, "leave one of them out"},
        Mistake{{"--requests-per-connection", "0"}, "requests-per-connection"},
        Mistake{{"--requests-per-connection", "1", "--workload", "chat"}, "each message goes to every client"},
        Mistake{{"--requests-per-connection", "2", "--depth", "3"}, "--depth.*--requests-per-connection"},
        Mistake{{"--rate", "5", "--depth", "2", "--workload", "chat", "-c", "2"}, "chat has no replies"},
        Mistake{{"--rate", "5", "--round", "1s"}, "closed loop"}, Mistake{{"--linger", "-1s"}, "no duration"},
        Mistake{{"--depth", "0"}, "depth"}, Mistake{{"-c", "0"}, "connections"}, Mistake{{"-c", "many"}, "many"},
        Mistake{{"--size", "28"}, "at least 29"}, Mistake{{"--size", "27", "--workload", "chat"}, "28"},
        Mistake{{"--size", "31k"}, "no size"}, Mistake{{"--size", "16KiB", "--workload", "http"}, "at most 16000"},
        Mistake{{"--duration", "10"}, "no duration"}, Mistake{{"--duration", "0"}, "longer than 0"},
        Mistake{{"--timeout", "0"}, "--timeout .*longer than 0"},
        Mistake{{"--connect-timeout", "0"}, "--connect-timeout .*longer than 0"},
        Mistake{{"--connect-rate", "when-due"}, "when-due is for an open loop"},
        Mistake{{"--connect-rate", "slow"}, "neither"}, Mistake{{"--seed", ""}, "--seed.*whole number"},
        Mistake{{"--seed", "-1"}, "whole number"}, Mistake{{"--seed", "1.5"}, "whole number"},
        Mistake{{"--seed", "18446744073709551616"}, "whole number"}, Mistake{{"--threads", "2"}, "more threads"},
        Mistake{{"--workload", "chat", "-c", "3", "--threads", "2"}, "second connection"},
        Mistake{{"--service-time", "1ms"}, "workload rpc, web and grpc"},
        Mistake{{"--service-kind", "cpu", "--workload", "rpc"}, "--service-kind is for --workload web and grpc"},
        Mistake{{"--size", "2MiB", "--workload", "web"}, "at most 1 MiB"},
        Mistake{{"--size", "2MiB", "--workload", "grpc"}, "a reply of grpc has at most 1 MiB"},
        Mistake{{"--write-mode", "split", "--workload", "grpc"}, "a message of grpc leaves whole"},
        Mistake{{"--size", "27", "--workload", "web"}, "at least 28"},
        Mistake{{"--chunks", "5"}, "--chunks is for --workload web"},
        Mistake{{"--chunks", "5", "--workload", "web"}, "a chunk has at least 32 bytes"},
        Mistake{{"--chunks", "9000", "--size", "64", "--workload", "web"}, "at most 1 MiB"},
        Mistake{{"--chunks", "5", "--size", "64", "--workload", "web", "--depth", "2"}, "one stream at a time"},
        Mistake{{"--chunks", "5", "--size", "64", "--workload", "web", "--every", "11s"}, "1us to 10s"},
        Mistake{{"--service-time", "11s", "--workload", "rpc"}, "at most 10s"},
        Mistake{{"--share", "0/2", "-c", "2"}, "no share"}, Mistake{{"--share", "3/2", "-c", "2"}, "no share"},
        Mistake{{"--share", "1", "-c", "2"}, "no share"}, Mistake{{"--share", "1/2"}, "every part needs a connection"},
        Mistake{{"--share", "1/2", "-c", "4", "--workload", "chat"}, "use --await-go"},
        Mistake{{"--share", "1/2", "-c", "3", "--workload", "chat", "--await-go"}, "second connection"},
        Mistake{{"--share", "1/2", "-c", "4", "-n", "5"}, "leave --count out"},
        Mistake{{"--witness"}, "--witness is for --turns"},
        Mistake{{"--turns", "--await-go"}, "--turns: leave --await-go and --share out"},
        Mistake{{"--turns", "--share", "1/2", "-c", "2"}, "--turns: leave --await-go and --share out"},
        Mistake{{"--turns", "-n", "5"}, "--turns: leave --count out"},
        Mistake{{"--turns", "--rate", "1k/1s,2k/1s"}, "--turns: every slice has one rate"},
        Mistake{{"--turns", "--slow-readers", "1", "-c", "5", "--workload", "chat"}, "--turns: leave --slow-readers"},
        Mistake{{"--events-fd", "987"}, "987 is not open"}, Mistake{{"tcp://127.0.0.1:1"}, "127.0.0.1:1"}));

TEST(LoadPlan, TakesClientsThatWriteAndNeverRead) {
  const LoadPlan plan = parse({"--workload", "chat", "-c", "1", "--messages", "7", "--every", "2ms"});
  EXPECT_TRUE(plan.is_write_only());
  EXPECT_EQ(plan.messages_each, 7U);
  EXPECT_EQ(plan.every, 2'000'000);
  EXPECT_EQ(parse({"--workload", "chat", "-c", "1", "--messages", "7"}).every, 5'000'000);
  EXPECT_FALSE(parse({}).is_write_only());
}

TEST(LoadPlan, TakesTransportsThatCarryMessages) {
  for (const char* url :
       {"udp://127.0.0.1:7000", "zmq+tcp://127.0.0.1:7000", "multicast://239.1.1.1:7000?interface=lo"})
    EXPECT_TRUE(carries_messages(parse_all({url, "--workload", "rpc", "--nodelay", "on"}).url));
  EXPECT_FALSE(carries_messages(parse({}).url));
  EXPECT_EQ(parse_all({"udp://127.0.0.1:7000", "--size", "65507"}).size, 65507U);
  EXPECT_EQ(parse_all({"udp://127.0.0.1:7000", "--workload", "chat", "-c", "2", "--size", "65503"}).size, 65503U);
  EXPECT_EQ(parse_all({"zmq+tcp://127.0.0.1:7000", "--size", "1MiB"}).size, 1U << 20);
}

class MessageMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(MessageMistakes, EndWithExit2AndOneLine) {
  const std::string line = std::string{"^netdyno-load: .*"} + GetParam().words + ".*help lists the options.\n$";
  EXPECT_EXIT(parse_all(GetParam().arguments), testing::ExitedWithCode(2), line);
}

constexpr const char* udp = "udp://127.0.0.1:7000";

INSTANTIATE_TEST_SUITE_P(
    Of, MessageMistakes,
    testing::Values(Mistake{{udp, "--workload", "http"}, "udp carries echo, rpc and chat"},
                    Mistake{{udp, "--turns"}, "--turns is for tcp"},
                    Mistake{{udp, "--busy-connections", "1", "-c", "2"}, "--busy-connections is for tcp"},
                    Mistake{{udp, "--workload", "lines"}, "udp carries echo, rpc and chat"},
                    Mistake{{udp, "--requests-per-connection", "1"}, "per-connection is for tcp"},
                    Mistake{{udp, "--rate", "5", "--depth", "2"}, "closed loop"},
                    Mistake{{udp, "--nodelay", "off"}, "nodelay off is for tcp"},
                    Mistake{{udp, "--write-mode", "split"}, "split is for tcp"},
                    Mistake{{udp, "--size", "65508"}, "at most 65507 bytes"},
                    Mistake{{udp, "--size", "65504", "--workload", "chat"}, "at most 65503 bytes"},
                    Mistake{{udp, "--size", "65500", "--workload", "rpc"}, "at most 65439 bytes"},
                    Mistake{{"multicast://239.1.1.1:7000", "--workload", "chat"}, "say --audience all"},
                    Mistake{{"multicast://239.1.1.1:7000", "--size", "65508"}, "at most 65507 bytes"},
                    Mistake{{"udp://127.0.0.1:0"}, "port 0"}, Mistake{{"quic://127.0.0.1:7000"}, "not supported"}));

TEST(LoadPlan, HelpHasExamples) {
  EXPECT_EXIT(
      {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        parse({"--help"});
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace netdyno::load
