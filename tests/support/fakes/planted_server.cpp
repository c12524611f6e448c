// A web server whose time goes where its tests have planted it: planted_server PORT [HOW]. For each request it burns
// WORK_US of CPU time; "planted" copies for as long as well, and then sleeps. It knows nothing of netdyno.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr long WORK_US = 300;
constexpr long SLEEP_NS = 2'000'000;

long cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

}  // namespace

// With external linkage, so that no compiler makes one function of two.
__attribute__((noinline)) unsigned planted_work() {
  volatile unsigned sum = 1;
  for (const long end = cpu_us() + WORK_US; cpu_us() < end;) {
    for (int i = 0; i < 4000; ++i) sum = sum * 1664525 + 1013904223;
  }
  return sum;
}

__attribute__((noinline)) unsigned planted_copy() {
  static thread_local std::vector<unsigned char> from(1 << 14, 7), to(1 << 14);
  for (const long end = cpu_us() + WORK_US; cpu_us() < end;) {
    for (std::size_t i = 0; i < from.size(); ++i) static_cast<volatile unsigned char*>(to.data())[i] = from[i];
  }
  return to.back();
}

__attribute__((noinline)) unsigned planted_sleep() {
  const timespec time{0, SLEEP_NS};
  return static_cast<unsigned>(nanosleep(&time, nullptr)) + 1;  // the sum keeps this frame on the stack
}

namespace {

void serve(int client, bool planted) {
  std::string received;
  char bytes[4096];
  for (ssize_t size = 0; (size = read(client, bytes, sizeof bytes)) > 0;) {
    received.append(bytes, static_cast<std::size_t>(size));
    for (std::size_t end = 0; (end = received.find("\r\n\r\n")) != std::string::npos; received.erase(0, end + 4)) {
      const auto begin = received.find(' ') + 1;
      const std::string path = received.substr(begin, received.find(' ', begin) - begin);
      unsigned done = planted_work();
      if (planted) done += planted_copy() + planted_sleep();
      const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(path.size()) + "\r\n\r\n";
      const std::string answer = head + path;
      if (done == 0 || write(client, answer.data(), answer.size()) < 0) break;
    }
  }
  close(client);
}

}  // namespace

int main(int count, char** words) {
  const bool planted = count > 2 && std::strcmp(words[2], "planted") == 0;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<unsigned short>(std::atoi(words[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 64) != 0) return 1;
  for (int client = 0; (client = accept(listener, nullptr, nullptr)) >= 0;)
    std::thread(serve, client, planted).detach();
}
