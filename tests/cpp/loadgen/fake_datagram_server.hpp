#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/cli/die.hpp"
#include "lib/net/bind.hpp"
#include "lib/protocol/handshake.hpp"

namespace netdyno {

/// A UDP server in this process, and the network to it: loses, repeats, holds back and damages exactly what a test
/// wants. One thread; behaviours run on it.
class FakeDatagramServer {
 public:
  struct Answer {
    std::string bytes;
    std::size_t audience = 0;  // goes to the first so many clients; 0: to the one that asked
    std::chrono::milliseconds delay{0};
    std::optional<ControlKind> control = {};  // this instead, with the client's token
  };
  /// Gets the number of the client, the number of the message from it (HELO and BYE! not counted), and the message.
  using Behaviour = std::function<std::vector<Answer>(int client, int message, const std::string& text)>;
  /// The answer to the n-th HELO of a client; nothing: it, or the answer, was lost.
  using Doorman = std::function<std::optional<ControlKind>(int client, int hello)>;

  struct Client {
    sockaddr_in address{};
    std::uint64_t token = 0;
    int hellos = 0;
    int byes = 0;  // with its token
    int messages = 0;
  };

  explicit FakeDatagramServer(Behaviour behaviour, Doorman doorman = welcome)
      : behaviour_(std::move(behaviour)),
        doorman_(std::move(doorman)),
        socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
        control_(eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    constexpr int room = 8 << 20;  // loses only what it means to, even if it is not scheduled for a while
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) die("bind");
    url_ = local_endpoint(socket_.get());
    url_.transport = "udp";
    thread_ = std::thread{[this] { serve(); }};
  }
  ~FakeDatagramServer() { stop(); }

  const Url& url() const { return url_; }
  /// Ends it, after which all that it heard can be read.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    const std::uint64_t increment = 1;
    [[maybe_unused]] const ssize_t n = write(control_.get(), &increment, sizeof increment);
    thread_.join();
  }
  /// Call when it is stopped: no socket listens there any more.
  void vanish() { socket_.reset(); }
  /// In the order of their first datagrams. When it is stopped.
  const std::vector<Client>& clients() const { return clients_; }

  static std::vector<Answer> echo(int, int, const std::string& message) { return {{message}}; }
  static std::optional<ControlKind> welcome(int, int) { return ControlKind::welcome; }

 private:
  using Clock = std::chrono::steady_clock;

  void serve() {
    while (!stopping_ && socket_) {
      pollfd watched[2]{{control_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
      poll(watched, 2, wait_ms());
      send_due();
      if (watched[1].revents != 0) receive();
    }
    // What was sent before the end, like a BYE!, is still heard.
    while (socket_ && receive()) {
    }
  }

  int wait_ms() const {
    if (later_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(later_.begin()->first - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }

  void send_due() {
    while (!later_.empty() && later_.begin()->first <= Clock::now()) {
      const auto& [client, bytes] = later_.begin()->second;
      send(client, bytes);
      later_.erase(later_.begin());
    }
  }

  bool receive() {
    std::string bytes(65536, '\0');
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t n =
        recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 0) return false;
    bytes.resize(static_cast<std::size_t>(n));
    const std::size_t number = find(from);
    if (is_control(bytes)) {
      hear(number, bytes);
    } else {
      answer(number, bytes);
    }
    return true;
  }

  std::size_t find(const sockaddr_in& address) {
    const auto known = std::ranges::find_if(
        clients_, [&](const Client& client) { return client.address.sin_port == address.sin_port; });
    const auto number = static_cast<std::size_t>(known - clients_.begin());
    if (known == clients_.end()) clients_.push_back({.address = address});
    return number;
  }

  void hear(std::size_t number, const std::string& bytes) {
    const auto message = decode_control(bytes);
    if (!message) return;
    Client& client = clients_[number];
    if (message->kind == ControlKind::bye && message->token == client.token) ++client.byes;
    if (message->kind != ControlKind::hello) return;
    client.token = message->token;
    const auto kind = doorman_(static_cast<int>(number), client.hellos++);
    if (kind) say(number, *kind);
  }

  void answer(std::size_t number, const std::string& bytes) {
    for (const Answer& answer : behaviour_(static_cast<int>(number), clients_[number].messages++, bytes)) {
      if (answer.control) say(number, *answer.control);
      if (answer.control) continue;
      const std::size_t first = answer.audience > 0 ? 0 : number;
      const std::size_t end = answer.audience > 0 ? std::min(answer.audience, clients_.size()) : number + 1;
      for (std::size_t i = first; i < end; ++i) {
        if (answer.delay.count() > 0) {
          later_.emplace(Clock::now() + answer.delay, std::pair{i, answer.bytes});
        } else {
          send(i, answer.bytes);
        }
      }
    }
  }

  void say(std::size_t number, ControlKind kind) {
    const ControlBytes bytes = encode_control({kind, clients_[number].token});
    send(number, {bytes.data(), bytes.size()});
  }

  void send(std::size_t number, const std::string& bytes) {
    const auto& address = clients_[number].address;
    sendto(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  Behaviour behaviour_;
  Doorman doorman_;
  UniqueFd socket_;
  UniqueFd control_;
  Url url_;
  std::atomic<bool> stopping_{false};
  std::vector<Client> clients_;
  std::multimap<Clock::time_point, std::pair<std::size_t, std::string>> later_;
  std::thread thread_;
};

}  // namespace netdyno
