#include "lib/net/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "lib/session/counters.hpp"

namespace netdyno {
namespace {

[[noreturn]] void die_errno(const std::string& what, int error) {
  die(fmt::format("{}: {}", what, std::strerror(error)));
}

std::string hint(int error) {
  if (error == EADDRINUSE) return "; another program listens there: choose another port, or port 0 for a free one";
  if (error == EACCES) return "; ports below 1024 need rights: choose a higher one";
  if (error == EADDRNOTAVAIL) return "; that address is not one of this machine's";
  return {};
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const Url& url, int type) {
  addrinfo hints{};
  hints.ai_socktype = type;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found);
  if (error != 0) die(fmt::format("cannot resolve '{}': {}", url.host, gai_strerror(error)));
  return {found, freeaddrinfo};
}

[[noreturn]] void die_not_listening(const Url& where, int error) {
  die_errno(fmt::format("cannot listen on {}{}", format_url(where), hint(error)), error);
}

void print_line(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

void die(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(1);
}

UniqueFd bind_socket(const Url& where, int type, const std::function<void(int)>& prepare) {
  constexpr int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  const auto addresses = resolve(where, type & ~flags);
  UniqueFd fd{socket(addresses->ai_family, type, 0)};
  if (!fd) die_errno("socket", errno);
  prepare(fd.get());
  if (bind(fd.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) die_not_listening(where, errno);
  return fd;
}

UniqueFd listen_tcp(const ServerOptions& options, bool nonblocking) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0);
  UniqueFd fd = bind_socket(options.listen, type, [](int new_fd) {
    const int on = 1;
    setsockopt(new_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  if (listen(fd.get(), options.backlog) != 0) die_not_listening(options.listen, errno);
  return fd;
}

Url local_endpoint(int fd, const std::string& transport) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) die_errno("getsockname", errno);
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                                NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) die(fmt::format("getnameinfo: {}", gai_strerror(error)));
  return {transport, host, static_cast<std::uint16_t>(std::atoi(port)), ""};
}

void set_nodelay(int fd, bool on) {
  const int value = on ? 1 : 0;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

void set_send_timeout(int fd, std::chrono::seconds timeout) {
  const timeval value{timeout.count(), 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

Accepted accept_one(int listener, bool nonblocking) {
  UniqueFd fd{accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0))};
  if (fd) return {AcceptStatus::accepted, std::move(fd)};
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return {AcceptStatus::exhausted, {}};
    case EINVAL:
    case EBADF:
      return {AcceptStatus::not_listening, {}};
    // accept(2): Linux passes pending network errors of the new socket through accept; they concern that peer alone.
    default:
      return {AcceptStatus::try_again, {}};
  }
}

SendResult send_all(int fd, std::string_view bytes, Patience patience) {
  int flags = MSG_NOSIGNAL | (patience == Patience::none ? MSG_DONTWAIT : 0);
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), flags);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      // Only its timeout cuts a blocking send short (send(2), socket(7)), so the time is up.
      if (patience == Patience::one_timeout) flags |= MSG_DONTWAIT;
    } else if (sent < 0 && errno == EAGAIN) {
      return SendResult::timed_out;
    } else if (sent < 0 && errno != EINTR) {
      return SendResult::peer_gone;
    }
  }
  return SendResult::sent;
}

void end_stream(int fd) {
  std::array<char, 64 << 10> scrap;
  constexpr int most_reads = 256;  // whoever sends on and on is reset after all
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < most_reads && recv(fd, scrap.data(), scrap.size(), MSG_DONTWAIT) > 0; ++i) {
  }
}

UniqueFd termination_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) die_errno("signalfd", errno);
  return fd;
}

void announce_ready(const Url& endpoint) {
  print_line({{"ready", true}, {"endpoint", format_url(endpoint)}, {"pid", getpid()}});
}

namespace {

nlohmann::ordered_json totals_json(const Totals& totals) {
  return {{"requests", totals.requests},
          {"bytes_in", totals.bytes_in},
          {"bytes_out", totals.bytes_out},
          {"connections", totals.connections},
          {"protocol_errors", totals.protocol_errors},
          {"slow_closed", totals.slow_closed}};
}

nlohmann::ordered_json totals_with_peers(const Totals& totals) {
  auto json = totals_json(totals);
  json["oversized"] = totals.oversized;
  json["peers_refused"] = totals.peers_refused;
  json["peers_expired"] = totals.peers_expired;
  json["strangers"] = totals.strangers;
  json["send_dropped"] = totals.send_dropped;
  json["receive_dropped"] = totals.receive_dropped;
  return json;
}

}  // namespace

void print_totals(const Totals& totals) { print_line(totals_json(totals)); }

void print_totals(const Totals& totals, const std::string& name, const std::string& json) {
  auto all = totals_json(totals);
  all[name] = nlohmann::ordered_json::parse(json);
  print_line(all);
}

void print_totals_with_peers(const Totals& totals) { print_line(totals_with_peers(totals)); }

void print_totals_with_peers(const Totals& totals, const std::string& name, const std::string& json) {
  auto all = totals_with_peers(totals);
  all[name] = nlohmann::ordered_json::parse(json);
  print_line(all);
}

}  // namespace netdyno
