// example HOST PORT < request: asks once, on a thread beside the application's loop, and prints the answer or what
// failed.
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <future>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>

#include "clients/asio-callbacks/library/client.hpp"

using namespace netdyno::client;

int main(int, char** arguments) {
  const std::string request{std::istreambuf_iterator{std::cin}, {}};
  std::promise<int> code;
  const auto end = [&code](std::ostream& out, std::string_view text, int result) {
    out << text << std::endl;
    code.set_value(result);
  };
  boost::asio::io_context io;
  asio_callbacks::Server server{io, arguments[1], static_cast<std::uint16_t>(std::stoi(arguments[2]))};
  using std::chrono_literals::operator""s;
  asio_callbacks::Client client{
      server,
      {.limits = {.resolve = 1s, .connect = 2s, .write = 1s, .answer = 2s}},
      {.connected = [&] { client.request(request); },
       .received = [&](FrameView frame) { return end(std::cout, frame.body(), 0), Received::answered; },
       .failed = [&](const Error& error) { end(std::cerr, error.text(), 1); }}};
  client.connect();
  std::jthread network{[&io] { io.run(); }};
  std::_Exit(code.get_future().get());  // the application goes on here; _Exit leaves a lookup that is still under way
}
