/// The workload web by Boost.Beast: coroutines of Boost.Asio, on as many threads as there are cores.

#include <ctime>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Request = http::request<http::string_body>;
using Reply = http::response<http::string_body>;
using std::chrono::microseconds;

constexpr std::chrono::seconds patience{30};
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

/// The number after `name`, which ends with "=", in a query; 0 where it is not there.
long find_number(std::string_view target, std::string_view name) {
  const auto place = target.find(name);
  long number = 0;
  if (place != std::string_view::npos)
    std::from_chars(target.data() + place + name.size(), target.data() + target.size(), number);
  return number;
}

Reply answer(const Request& request) {
  Reply reply{http::status::ok, request.version()};
  reply.keep_alive(request.keep_alive());
  const std::string_view target = request.target();
  if (target == "/items") {
    reply.set(http::field::content_type, "application/json");
    reply.body() = request.method() == http::verb::post ? std::to_string(request.body().size()) : items;
  } else {
    burn(microseconds{find_number(target, "cpu=")});
    reply.set(http::field::content_type, "text/plain");
    reply.body() = target.substr(1, target.find('?') - 1);
    reply.body().resize(std::max<std::size_t>(reply.body().size(), find_number(target, "size=")), 'x');
  }
  reply.prepare_payload();
  return reply;
}

asio::awaitable<void> serve(beast::tcp_stream stream) {
  beast::flat_buffer buffer;
  try {
    for (bool stays = true; stays;) {
      Request request;
      stream.expires_after(patience);
      co_await http::async_read(stream, buffer, request, asio::use_awaitable);
      if (const microseconds wait{find_number(request.target(), "wait=")}; wait.count() > 0)
        co_await asio::steady_timer{co_await asio::this_coro::executor, wait}.async_wait(asio::use_awaitable);
      const auto reply = answer(request);
      stays = reply.keep_alive();
      stream.expires_after(patience);
      co_await http::async_write(stream, reply, asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // the client has left
  }
  beast::error_code ignored;
  stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

/// One thread is a strand already.
asio::awaitable<void> listen(asio::ip::tcp::endpoint endpoint, bool one_thread) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::ip::tcp::acceptor acceptor{executor, endpoint};
  while (true) {
    const asio::any_io_executor strand = one_thread ? executor : asio::any_io_executor{asio::make_strand(executor)};
    auto socket = co_await acceptor.async_accept(strand, asio::use_awaitable);
    socket.set_option(asio::ip::tcp::no_delay{true});
    asio::co_spawn(strand, serve(beast::tcp_stream{std::move(socket)}), asio::detached);
  }
}

int main(int, char** argv) {
  const int threads = std::stoi(argv[3]);
  asio::io_context context{threads};
  const asio::ip::tcp::endpoint endpoint{asio::ip::make_address(argv[1]),
                                         static_cast<unsigned short>(std::stoi(argv[2]))};
  asio::co_spawn(context, listen(endpoint, threads == 1), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back([&] { context.run(); });
  context.run();
}
