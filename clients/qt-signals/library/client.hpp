#pragma once

#include <QAbstractSocket>
#include <QHostAddress>
#include <QList>
#include <QObject>
#include <QTcpSocket>
#include <QTimer>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clients/_shared/stages.hpp"

class QHostInfo;

namespace netdyno::client::qt_signals {

class Client;

/// A timer that fires once, when it is due: Qt's default may be 5% off.
class Alarm : public QTimer {
 public:
  Alarm();
  /// In whole milliseconds, never early.
  void start_after(std::chrono::nanoseconds span);
};

/// The name of a server, and its lookup. Qt looks a name up once at a time, so all clients of a server share a lookup:
/// ten slow ones would add up. It outlives its clients.
class Server : public QObject {
 public:
  Server(std::string host, std::uint16_t port);

  /// getaddrinfo(3) cannot be broken off, so a lookup may outlive the limit of its caller; and Qt waits for it
  /// at the end of the program.
  bool is_resolving() const { return resolving_; }

 private:
  friend class Client;

  void resolve();

  std::string host_;
  std::uint16_t port_;
  std::vector<Client*> clients_;
  bool resolving_ = false;
};

/// A client of one connection with one request in flight: slots that are connected to the signals of its socket and its
/// timers. Each stage has a limit, and nothing blocks. All of it on the thread that it belongs to, in its event loop.
class Client : public QObject {
 public:
  Client(Server& server, Options options, Handlers handlers);
  ~Client() override;

  /// Begins an attempt: resolve, then connect, to each address in order until one answers. What was before is dropped.
  void connect_to_server();
  /// Sends a request of at least one byte, which is copied. The connection must be idle.
  void request(std::string_view body);
  /// Lets go of the connection, or of the attempt to get one. No handler is called for it.
  void close();

 private:
  friend class Server;

  void on_resolved(const QHostInfo& found);
  void connect_to_next();
  void on_connected();
  void write(std::string_view bytes);
  void on_ready_read();
  bool take_frame();
  void on_error(QAbstractSocket::SocketError error);
  void begin(Stage stage);
  Stage stage() const;
  void arm();
  void on_deadline();
  void fail(Reason reason);

  Server& server_;
  Options options_;
  Handlers handlers_;
  QTcpSocket socket_;
  Alarm deadline_;  // of the stage that is under way
  Alarm next_;      // address: not before the socket has reported everything about the last one
  std::chrono::steady_clock::time_point began_;
  QList<QHostAddress> addresses_;   // that are still to be tried
  Reason refusal_ = Reason::other;  // of the first of them
  Stage stage_ = Stage::idle;
  std::uint64_t attempt_ = 0;
  std::string received_;   // from the stream
  std::size_t taken_ = 0;  // of it, by frames
  bool open_ = false;      // there is a connection, or an attempt to get one
};

}  // namespace netdyno::client::qt_signals
