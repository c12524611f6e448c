/// The workload web by cpp-httplib: a thread for each connection.

#include <ctime>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <httplib.h>

using std::chrono::microseconds;

constexpr const char* items = R"([{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}])";
constexpr std::time_t keep_alive_s = 75;  // nginx's

/// In place of the pool of eight threads, of which an idle client would occupy one.
class ThreadPerConnection final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override { std::thread{std::move(serve)}.detach(); }
  void shutdown() override {}
};

/// Keeps the thread busy, by its CPU clock.
void burn(microseconds duration) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
  };
  for (const auto end = used() + duration; used() < end;) {
  }
}

/// The number of a parameter; 0 where it is not there.
long find_number(const httplib::Request& request, const char* name) {
  return std::strtol(request.get_param_value(name).c_str(), nullptr, 10);
}

void answer(const httplib::Request& request, httplib::Response& response) {
  if (const microseconds wait{find_number(request, "wait")}; wait.count() > 0) std::this_thread::sleep_for(wait);
  burn(microseconds{find_number(request, "cpu")});
  auto body = request.path.substr(1);
  body.resize(std::max<std::size_t>(body.size(), find_number(request, "size")), 'x');
  response.set_content(std::move(body), "text/plain");
}

int main(int, char** argv) {
  httplib::Server server;
  server.new_task_queue = [] { return new ThreadPerConnection; };
  server.set_keep_alive_max_count(1'000'000);
  server.set_keep_alive_timeout(keep_alive_s);
  server.set_tcp_nodelay(true);
  server.Get("/items", [](const auto&, auto& response) { response.set_content(items, "application/json"); });
  server.Post("/items", [](const auto& request, auto& response) {
    response.set_content(std::to_string(request.body.size()), "application/json");
  });
  server.Get("/.*", answer);
  socket_t listening = -1;
  server.set_socket_options([&](socket_t socket) {
    httplib::default_socket_options(socket);
    listening = socket;
  });
  if (!server.bind_to_port(argv[1], std::stoi(argv[2]))) return 1;
  ::listen(listening, SOMAXCONN);  // again, as cpp-httplib listens with a backlog of 5
  return server.listen_after_bind() ? 0 : 1;
}
