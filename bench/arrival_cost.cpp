// What it costs to know when bytes arrived (docs/adr/receive-lag.md): a round trip over loopback with both ends in one
// thread, without arrival times, with them, and with each read asking for its own. The three take turns.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/measure/clock.hpp"
#include "lib/net/arrivals.hpp"
#include "lib/server/lifecycle.hpp"

namespace {

using namespace netdyno;
using load::now_ns;

constexpr int rounds = 150;
constexpr int warm_up = 200;
constexpr int round_trips = 500;
constexpr std::array<std::string_view, 3> ways{"no arrival times", "arrival times kept", "and asked for by each read"};

void check(bool good) {
  if (!good) die(std::strerror(errno));
}

struct Ends {
  UniqueFd client, server;
};

Ends connect_ends() {
  const UniqueFd listener = listen_tcp({}, false);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  Ends ends{UniqueFd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, {}};
  check(connect(ends.client.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  ends.server.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  set_nodelay(ends.client.get(), true);
  set_nodelay(ends.server.get(), true);
  return ends;
}

void pass_on(int from, int to, bool ask, WallClock& clock) {
  std::array<char, 4096> bytes{};
  check(send(from, bytes.data(), 31, MSG_NOSIGNAL) == 31);
  if (!ask) return check(recv(to, bytes.data(), bytes.size(), 0) == 31);
  KernelStamp stamp;
  check(receive_stamped(to, bytes, 0, stamp) == 31);
  check(stamp && clock.monotonic(*stamp, WallClock::read()));
}

}  // namespace

int main() {
  const Ends ends = connect_ends();
  WallClock clock;
  std::array<std::vector<double>, ways.size()> took;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      keep_arrival_times(ends.client.get(), way > 0);
      // The kernel begins and stops stamping a moment later (net_enable_timestamp in net/core/dev.c).
      std::this_thread::sleep_for(std::chrono::milliseconds{3});
      for (int i = -warm_up; i < round_trips; i += 100) {
        const auto begin = now_ns();
        for (int k = 0; k < 100; ++k) {
          pass_on(ends.client.get(), ends.server.get(), false, clock);
          pass_on(ends.server.get(), ends.client.get(), way == 2, clock);
        }
        if (i >= 0) took[way].push_back(static_cast<double>(now_ns() - begin) / 100);
      }
    }
  }
  for (std::size_t way = 0; way < ways.size(); ++way) {
    std::ranges::sort(took[way]);
    const auto last = static_cast<double>(took[way].size() - 1);
    const auto at = [&](double share) { return took[way][static_cast<std::size_t>(share * last)]; };
    fmt::print("{:<28} {:.0f} ns a round trip at best, first tenth {:.0f}, median {:.0f}\n", ways[way], at(0), at(0.1),
               at(0.5));
  }
}
