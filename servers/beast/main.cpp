/// The workload web by Boost.Beast: coroutines of Boost.Asio, on as many threads as there are cores.

#include <ctime>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Request = http::request<http::string_body>;
using Reply = http::response<http::string_body>;
using std::chrono::microseconds;

constexpr const char* items = R"([{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}])";

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

/// The number after `name` in a query; 0 where it is not there.
long find_number(const std::string& target, const std::string& name) {
  const auto place = target.find(name + "=");
  return place == std::string::npos ? 0 : std::strtol(target.c_str() + place + name.size() + 1, nullptr, 10);
}

asio::awaitable<Reply> answer(const Request& request) {
  Reply reply{http::status::ok, request.version()};
  reply.keep_alive(request.keep_alive());
  const std::string target{request.target()};
  if (target == "/items") {
    reply.set(http::field::content_type, "application/json");
    reply.body() = request.method() == http::verb::post ? std::to_string(request.body().size()) : items;
  } else {
    if (const microseconds wait{find_number(target, "wait")}; wait.count() > 0)
      co_await asio::steady_timer{co_await asio::this_coro::executor, wait}.async_wait(asio::use_awaitable);
    burn(microseconds{find_number(target, "cpu")});
    reply.set(http::field::content_type, "text/plain");
    reply.body() = target.substr(1, target.find('?') - 1);
    reply.body().resize(std::max<std::size_t>(reply.body().size(), find_number(target, "size")), 'x');
  }
  reply.prepare_payload();
  co_return reply;
}

asio::awaitable<void> serve(beast::tcp_stream stream) {
  beast::flat_buffer buffer;
  try {
    for (bool stays = true; stays;) {
      Request request;
      co_await http::async_read(stream, buffer, request, asio::use_awaitable);
      const auto reply = co_await answer(request);
      stays = reply.keep_alive();
      co_await http::async_write(stream, reply, asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // the client has left
  }
  beast::error_code ignored;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> listen(asio::ip::tcp::endpoint endpoint) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::acceptor acceptor{executor, endpoint};
  while (true) {
    auto socket = co_await acceptor.async_accept(asio::make_strand(executor), asio::use_awaitable);
    socket.set_option(asio::ip::tcp::no_delay{true});
    const auto strand = socket.get_executor();
    asio::co_spawn(strand, serve(beast::tcp_stream{std::move(socket)}), asio::detached);
  }
}

int main(int, char** argv) {
  const int threads = std::stoi(argv[3]);
  asio::io_context context{threads};
  asio::co_spawn(context, listen({asio::ip::make_address(argv[1]), static_cast<unsigned short>(std::stoi(argv[2]))}),
                 [](std::exception_ptr failure) {
                   if (failure) std::rethrow_exception(failure);
                 });
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back([&] { context.run(); });
  context.run();
}
