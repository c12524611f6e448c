// example HOST PORT < request: asks once, in the application's own loop, and prints the answer or what failed.
#include <QCoreApplication>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "clients/qt-signals/library/client.hpp"

using namespace netdyno::client;

int main(int count, char** arguments) {
  const std::string request{std::istreambuf_iterator{std::cin}, {}};
  const auto end = [](std::ostream& out, std::string_view text, int result) {
    out << text << std::endl;
    QCoreApplication::exit(result);
  };
  const QCoreApplication application{count, arguments};
  qt_signals::Server server{arguments[1], static_cast<std::uint16_t>(std::stoi(arguments[2]))};
  using std::chrono_literals::operator""s;
  qt_signals::Client client{
      server,
      {.limits = {.resolve = 1s, .connect = 2s, .write = 1s, .answer = 2s}},
      {.connected = [&] { client.request(request); },
       .received = [&](FrameView frame) { return end(std::cout, frame.body(), 0), Received::answered; },
       .failed = [&](const Error& error) { end(std::cerr, error.text(), 1); }}};
  client.connect_to_server();
  std::_Exit(QCoreApplication::exec());  // _Exit leaves a lookup that is still under way
}
