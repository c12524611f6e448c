#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clients/_shared/stages.hpp"

namespace netdyno::client::asio_callbacks {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Client;

/// The name of a server, and its lookup. Asio looks names up on one thread, one after the other, so all clients of a
/// server share a lookup: ten slow ones would add up. It outlives its clients.
class Server {
 public:
  Server(asio::io_context& io, std::string host, std::uint16_t port);

  /// getaddrinfo(3) cannot be broken off, so a lookup may outlive the limit of its caller; and the io_context
  /// waits for it when it is destroyed.
  bool is_resolving() const { return resolving_; }

 private:
  friend class Client;

  void resolve();

  asio::io_context& io_;
  std::string host_;
  std::uint16_t port_;
  tcp::resolver resolver_;
  std::vector<Client*> clients_;
  bool resolving_ = false;
};

/// A client of one connection with one request in flight: a chain of handlers. Each stage has a limit, and nothing
/// blocks. All of it on the thread that runs the io_context.
class Client {
 public:
  Client(Server& server, Options options, Handlers handlers);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Begins an attempt: resolve, then connect, to each address in order until one answers. What was before is dropped.
  void connect();
  /// Sends a request of at least one byte, which is copied. The connection must be idle.
  void request(std::string_view body);
  /// Lets go of the connection, or of the attempt to get one. No handler is called for it.
  void close();

 private:
  friend class Server;

  void on_resolved(const error_code& error, const tcp::resolver::results_type& addresses);
  void on_connected(const error_code& error);
  void write_body();
  void read_header();
  void read_body();
  void on_frame();
  void begin(Stage stage);
  void arm();
  void on_deadline();
  void fail(Reason reason, int code = 0);
  void fail_stream(const error_code& error);
  template <typename Handler>
  auto in_this_attempt(Handler handler);

  Server& server_;
  Options options_;
  Handlers handlers_;
  tcp::socket socket_;
  asio::steady_timer timer_;  // of the stage that is under way
  asio::steady_timer::time_point began_;
  Stage stage_ = Stage::idle;
  std::string request_;
  std::string answer_;
  std::shared_ptr<bool> attempt_ = std::make_shared<bool>(false);  // whether it goes on; its handlers keep it
};

}  // namespace netdyno::client::asio_callbacks
