#include "canary/workload.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "canary/place.hpp"
#include "canary/slices.hpp"
#include "lib/cli/die.hpp"
#include "lib/net/send.hpp"

namespace netdyno::canary {
namespace {

constexpr std::size_t round_trips_per_slice = 16;  // 0.2 to 1 ms: a time slice of the scheduler is longer
constexpr std::size_t steps_per_slice = 100'000;   // about 0.2 ms
constexpr std::chrono::seconds patience{5};

enum class MessageKind : std::uint32_t { message, count, counted, move };

/// Both ends are the same program: bytes in the machine's own order.
struct Message {
  MessageKind kind;
  std::int32_t core = 0;
  std::int64_t how_long_ns = 0;
  double millions_per_second = 0;
  std::array<char, 40> padding{};
};
static_assert(sizeof(Message) == 64);

[[noreturn]] void die_of(const char* what) { die(std::string{"cannot "} + what + ": " + std::strerror(errno)); }

void send_message(int fd, const Message& message) {
  if (send(fd, &message, sizeof message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof message)) die_of("send");
}

/// Nothing at the end of the stream: the other process has ended.
std::optional<Message> receive_message(int fd) {
  Message message{};
  const ssize_t got = recv(fd, &message, sizeof message, MSG_WAITALL);
  if (got < 0 && errno != ECONNRESET) die_of("receive");
  if (got != static_cast<ssize_t>(sizeof message)) return std::nullopt;
  return message;
}

Message receive_answer(int fd) {
  const std::optional<Message> message = receive_message(fd);
  if (!message) die("the process that answers has ended");
  return *message;
}

void prepare_end(int fd) {
  set_nodelay(fd, true);
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) die_of("limit the time of a receive");
}

}  // namespace

std::pair<UniqueFd, UniqueFd> make_connected_pair() {
  const UniqueFd listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (!listener || bind(listener.get(), where, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), where, &size) != 0)
    die_of("listen on the loopback");
  UniqueFd asking{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!asking || connect(asking.get(), where, size) != 0) die_of("connect over the loopback");
  UniqueFd answering{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!answering) die_of("accept over the loopback");
  prepare_end(asking.get());
  prepare_end(answering.get());
  return {std::move(asking), std::move(answering)};
}

double measure_round_trips(int fd, std::chrono::nanoseconds how_long) {
  const auto slice = [fd] {
    for (std::size_t i = 0; i < round_trips_per_slice; ++i) {
      send_message(fd, {.kind = MessageKind::message});
      receive_answer(fd);
    }
  };
  return compute_rates(round_trips_per_slice, measure_slices(how_long, slice)).typical;
}

double count(std::chrono::nanoseconds how_long) {
  std::uint64_t state = 1;
  volatile std::uint64_t seen = 0;  // so that the compiler cannot leave the work out
  const auto slice = [&state, &seen] {
    for (std::size_t i = 0; i < steps_per_slice; ++i) state = state * 6364136223846793005U + (state >> 33U);
    seen = state;
  };
  return compute_rates(steps_per_slice, measure_slices(how_long, slice)).overall / 1e6;
}

std::pair<double, double> count_together(int fd, std::chrono::nanoseconds how_long) {
  send_message(fd, {.kind = MessageKind::count, .how_long_ns = how_long.count()});
  const double here = count(how_long);
  return {receive_answer(fd).millions_per_second, here};
}

double measure_round_trips_on_one_core(int fd, int core, std::chrono::nanoseconds how_long) {
  send_message(fd, {.kind = MessageKind::move, .core = core});
  run_on({core});
  return measure_round_trips(fd, how_long);
}

void answer(int fd) {
  while (const std::optional<Message> message = receive_message(fd)) {
    if (message->kind == MessageKind::move) {
      run_on({message->core});
    } else if (message->kind == MessageKind::count) {
      const double speed = count(std::chrono::nanoseconds{message->how_long_ns});
      send_message(fd, {.kind = MessageKind::counted, .millions_per_second = speed});
    } else {
      send_message(fd, *message);
    }
  }
}

}  // namespace netdyno::canary
