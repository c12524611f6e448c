// What the calls for many datagrams bring a UDP server, beside one call for each: recvmmsg(2) and sendmmsg(2), pieces
// that the kernel cuts up (UDP_SEGMENT, "GSO"), and pieces that it hands over whole (UDP_GRO).
//
//     bench/datagram_calls [ROUNDS]
//
// One thread is the clients and the server in turn: the clients send, then the server's part alone is measured, then
// the clients' buffers are emptied and counted. So nobody waits for anybody, and what is told is the CPU time of the
// server's part (on loopback the receiver's share of the network stack is in it). Each round measures every way once;
// a ratio is always of two ways in one round.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "lib/cli/die.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"

using namespace netdyno;

namespace {

constexpr int repeats = 50;  // of each way in a round
const std::string text(40, 'm');

struct Client {
  explicit Client(bool merged) {
    if (merged && !merge_arrivals(socket.get())) die("UDP_GRO: needs Linux 5.0");
    socklen_t size = Address::capacity;
    getsockname(socket.get(), address.data(), &size);
  }
  UniqueFd socket = bind_udp({});
  Address address;
};

/// A server's socket, and its clients.
class Scene {
 public:
  struct Calls {
    bool batched;  // recvmmsg and sendmmsg, or one call for each
    bool cut;      // GSO
    bool merged;   // GRO, at both ends
  };

  Scene(std::size_t clients, Calls calls)
      : calls_(calls),
        socket_(bind_udp(large_buffers())),
        receiver_(max_datagram, calls.merged && merge_arrivals(socket_.get()), counters_),
        sender_(Sender::to_socket(socket_.get()), calls.cut, 1 << 20, counters_) {
    for (std::size_t i = 0; i < clients; ++i) clients_.emplace_back(calls.merged);
    socklen_t size = Address::capacity;
    getsockname(socket_.get(), address_.data(), &size);
  }

  /// Each client sends `count` datagrams, in one piece where the server gets them so.
  void clients_send(std::size_t count) {
    for (const Client& client : clients_) {
      Sender sender{Sender::to_socket(client.socket.get()), calls_.merged, 1 << 20, counters_};
      for (std::size_t i = 0; i < count; ++i) sender.push_copy(address_, text);
      sender.flush();
    }
  }

  /// The server sends back what has come. How many datagrams that was.
  std::size_t echo() {
    std::size_t count = 0;
    if (!calls_.batched) {
      Address from;
      socklen_t size = Address::capacity;
      for (ssize_t n = 0;
           (n = recvfrom(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT, from.data(), &size)) >= 0;
           ++count)
        send_one(from, {buffer_.data(), static_cast<std::size_t>(n)});
      return count;
    }
    const auto answer = [&](const Address& from, std::string_view bytes) {
      sender_.push_copy(from, bytes);
      ++count;
    };
    while (has_arrivals(socket_.get())) {
      receiver_.receive(socket_.get(), answer);
      sender_.flush();
    }
    return count;
  }

  /// The server sends `said` messages to every client. How many datagrams that are.
  std::size_t fan_out(std::size_t said) {
    std::vector<std::string_view> kept;
    for (std::size_t i = 0; i < said; ++i) kept.push_back(sender_.keep(text));
    for (const Client& client : clients_)
      for (const std::string_view one : kept)
        calls_.batched ? sender_.push(client.address, one) : send_one(client.address, one);
    sender_.flush();
    return said * clients_.size();
  }

  /// How many datagrams the clients got.
  std::size_t clients_receive() {
    std::size_t bytes = 0;
    for (const Client& client : clients_)
      for (ssize_t n = 0; (n = recv(client.socket.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT)) >= 0;)
        bytes += static_cast<std::size_t>(n);
    return bytes / text.size();
  }

 private:
  static ServerOptions large_buffers() {
    ServerOptions options;
    options.socket_buffer = 4 << 20;
    return options;
  }

  void send_one(const Address& to, std::string_view bytes) {
    if (sendto(socket_.get(), bytes.data(), bytes.size(), 0, to.data(), to.size()) < 0) die("sendto");
  }

  const Calls calls_;
  Counters counters_;
  UniqueFd socket_;
  Address address_;
  Receiver receiver_;
  Sender sender_;
  std::vector<Client> clients_;
  std::array<char, 1 << 16> buffer_;
};

double thread_cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

using Prepare = std::function<void(Scene&)>;
using Serve = std::function<std::size_t(Scene&)>;

/// CPU us per datagram of `serve`; dies when the clients do not get every one.
double cost(Scene& scene, const Prepare& prepare, const Serve& serve) {
  double us = 0;
  std::size_t sent = 0;
  std::size_t received = 0;
  for (int i = 0; i < repeats; ++i) {
    prepare(scene);
    const double before = thread_cpu_us();
    sent += serve(scene);
    us += thread_cpu_us() - before;
    received += scene.clients_receive();
  }
  if (sent == 0 || received != sent) die(fmt::format("{} datagrams sent and {} received", sent, received));
  return us / static_cast<double>(sent);
}

struct Way {
  const char* name;
  Scene::Calls calls;
};
constexpr Way ways[]{{"one call for each", {false, false, false}},
                     {"many with one call", {true, false, false}},
                     {"many with one call, GSO", {true, true, false}},
                     {"many with one call, GSO and GRO", {true, true, true}}};

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void compare(const std::string& title, std::size_t clients, int rounds, const Prepare& prepare, const Serve& serve) {
  std::deque<Scene> scenes;
  for (const Way& way : ways) scenes.emplace_back(clients, way.calls);
  std::vector<std::vector<double>> costs(scenes.size());
  for (Scene& scene : scenes) cost(scene, prepare, serve);  // the first time is everybody's slowest
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < scenes.size(); ++i) {
      const std::size_t turn = round % 2 == 0 ? i : scenes.size() - 1 - i;  // so that drift favours none
      costs[turn].push_back(cost(scenes[turn], prepare, serve));
    }

  fmt::print("{}\n{:36}{:>16}{:>20}{:>28}\n", title, "", "us a datagram", "datagrams a cpu-s",
             "times as many (quartiles)");
  for (std::size_t i = 0; i < costs.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < costs[i].size(); ++round) ratios.push_back(costs[0][round] / costs[i][round]);
    const double us = quantile(costs[i], 0.5);
    fmt::print("  {:34}{:>16.3f}{:>20.0f}{:>12.2f} ({:.2f} to {:.2f})\n", ways[i].name, us, 1e6 / us,
               quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void compare_echo(std::size_t clients, std::size_t depth, int rounds) {
  compare(
      fmt::format("echo, {} clients, {} message(s) of {} bytes each in a row", clients, depth, text.size()), clients,
      rounds, [depth](Scene& scene) { scene.clients_send(depth); }, [](Scene& scene) { return scene.echo(); });
}

void compare_fan_out(std::size_t clients, std::size_t said, int rounds) {
  compare(
      fmt::format("chat, {} message(s) of {} bytes in a turn, to each of {} clients", said, text.size(), clients),
      clients, rounds, [](Scene&) {}, [said](Scene& scene) { return scene.fan_out(said); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  if (argc > 2 || rounds < 1) die("usage: datagram_calls [ROUNDS]");
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);  // a thousand clients of each way
  compare_echo(100, 1, rounds);
  compare_echo(10, 16, rounds);
  for (const std::size_t said : {1u, 4u, 64u})
    for (const std::size_t clients : {100u, 1000u}) compare_fan_out(clients, said, rounds);
}
