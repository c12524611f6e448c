// An echo server whose cost is planted, for answers.py: planted_server PORT WORK_NS LATE_US RARE_US. Each message of 64
// bytes burns WORK_NS of CPU; two in a hundred are answered LATE_US later, and one in a hundred RARE_US later. Which
// ones is random. A thread for each connection; it knows nothing of netdyno.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <random>
#include <thread>

namespace {

constexpr std::size_t MESSAGE = 64;
constexpr unsigned IN_A_HUNDRED_LATE = 2;

struct Plant {
  long work_ns;
  long late_us;
  long rare_us;
};

long read_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void burn(long work_ns) {
  for (const long end = read_cpu_ns() + work_ns; read_cpu_ns() < end;) {
  }
}

void wait(long us) {
  const timespec time{us / 1'000'000, us % 1'000'000 * 1'000};
  nanosleep(&time, nullptr);
}

bool receive(int client, std::array<char, MESSAGE>& message) {
  return recv(client, message.data(), message.size(), MSG_WAITALL) == static_cast<ssize_t>(message.size());
}

bool send_back(int client, const std::array<char, MESSAGE>& message) {
  return send(client, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

void serve(int client, Plant plant, unsigned seed) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::minstd_rand random{seed};
  std::uniform_int_distribution<unsigned> draw{0, 99};
  std::array<char, MESSAGE> message{};
  while (receive(client, message)) {
    if (plant.work_ns > 0) burn(plant.work_ns);
    const unsigned drawn = draw(random);
    if (drawn < IN_A_HUNDRED_LATE && plant.late_us > 0) wait(plant.late_us);
    if (drawn == IN_A_HUNDRED_LATE && plant.rare_us > 0) wait(plant.rare_us);
    if (!send_back(client, message)) break;
  }
  close(client);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  const Plant plant{std::atol(words[2]), std::atol(words[3]), std::atol(words[4])};
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<unsigned short>(std::atoi(words[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 1024) != 0)
    return 1;
  std::random_device device;
  for (int client = 0; (client = accept(listener, nullptr, nullptr)) >= 0;) {
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread(serve, client, plant, device()).detach();
  }
}
