#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "lib/server/lifecycle.hpp"

namespace netdyno {

/// A server in this process that answers each line as a test wants it, well or badly. One thread, blocking sends.
class FakeServer {
 public:
  enum class Then { go_on, close, reset };
  struct Answer {
    std::string bytes;
    Then then = Then::go_on;
    std::size_t audience = 0;  // goes to the first so many connections; 0: to the one that asked
  };
  /// Gets the number of the connection, the number of the message on it, and the whole message.
  using Behaviour = std::function<Answer(int connection, int message, const std::string& text)>;
  /// Size of the message at the front of `bytes`; 0 while it is not complete.
  using Framing = std::size_t (*)(const std::string& bytes);

  static std::size_t lines(const std::string& bytes) { return bytes.find('\n') + 1; }
  static std::size_t frames(const std::string& bytes) {
    if (bytes.size() < frame_header_size) return 0;
    const std::size_t whole = frame_header_size + decode_frame_header(bytes.data());
    return bytes.size() < whole ? 0 : whole;
  }

  /// `held`: accepts, but reads nothing before release().
  explicit FakeServer(Behaviour behaviour, bool held = false, Framing framing = lines)
      : behaviour_(std::move(behaviour)),
        framing_(framing),
        listener_(listen_tcp({}, true)),
        control_(eventfd(0, EFD_CLOEXEC)),
        held_(held) {
    thread_ = std::thread{[this] { serve(); }};
  }
  ~FakeServer() { stop(); }
  /// Ends its thread: what its behaviour has noted may be read from then on.
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    poke();
    thread_.join();
  }

  Url url() const { return local_endpoint(listener_.get()); }
  void release() {
    held_ = false;
    poke();
  }
  /// The addresses that connected, after stop().
  const std::set<std::string>& peers() const { return peers_; }

  static Answer echo(int, int, const std::string& line) { return {line}; }

 private:
  struct Client {
    UniqueFd fd;
    int number = 0;
    int messages = 0;
    std::string pending;
  };

  void poke() {
    const std::uint64_t increment = 1;
    [[maybe_unused]] const ssize_t n = write(control_.get(), &increment, sizeof increment);
  }

  void serve() {
    std::vector<Client> clients;
    int accepted = 0;
    while (!stopping_) {
      std::vector<pollfd> watched{{control_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      if (!held_)
        for (const Client& client : clients) watched.push_back({client.fd.get(), POLLIN, 0});
      poll(watched.data(), watched.size(), -1);
      if (watched[0].revents != 0) {
        std::uint64_t unused = 0;
        [[maybe_unused]] const ssize_t n = read(control_.get(), &unused, sizeof unused);
      }
      for (std::size_t i = 2; i < watched.size(); ++i)
        if (watched[i].revents != 0 && !receive(clients[i - 2], clients)) clients[i - 2].fd.reset();
      std::erase_if(clients, [](const Client& client) { return !client.fd; });
      for (Accepted next = accept_next(listener_.get(), false); next.status == AcceptStatus::accepted;
           next = accept_next(listener_.get(), false)) {
        note_peer(next.fd.get());
        clients.push_back({std::move(next.fd), accepted++, 0, {}});
      }
    }
  }

  bool receive(Client& client, const std::vector<Client>& all) {
    char buffer[64 << 10];
    const ssize_t n = recv(client.fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    client.pending.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t size = framing_(client.pending); size > 0; size = framing_(client.pending)) {
      const Answer answer = behaviour_(client.number, client.messages++, client.pending.substr(0, size));
      client.pending.erase(0, size);
      if (answer.audience == 0) send_all(client.fd.get(), answer.bytes);
      for (std::size_t i = 0; i < std::min(answer.audience, all.size()); ++i) send_all(all[i].fd.get(), answer.bytes);
      if (answer.then != Then::go_on) return end(client, answer.then);
    }
    return true;
  }

  static bool end(const Client& client, Then how) {
    if (how == Then::reset) {
      const linger at_once{1, 0};  // socket(7): close sends a reset
      setsockopt(client.fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    } else {
      shutdown(client.fd.get(),
               SHUT_WR);  // or close would send a reset if a further message has come (RFC 1122, 4.2.2.13)
    }
    return false;
  }

  void note_peer(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&address.sin_addr);
    peers_.insert(std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." + std::to_string(bytes[2]) + "." +
                  std::to_string(bytes[3]));
  }

  Behaviour behaviour_;
  Framing framing_;
  UniqueFd listener_;
  UniqueFd control_;
  std::atomic<bool> held_;
  std::atomic<bool> stopping_{false};
  std::set<std::string> peers_;
  std::thread thread_;
};

}  // namespace netdyno
