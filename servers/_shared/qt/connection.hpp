#pragma once

#include <QTcpSocket>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/server/registry.hpp"
#include "lib/session/session.hpp"

namespace netdyno::qt {

class QtConnection;

/// State shared by all connections of a server.
struct QtServerState {
  const ServerOptions& options;
  Counters counters;
  Registry<QtConnection> registry;
  std::atomic<bool> ending = false;  // set before all in the registry are notified: a client that joins later checks it

  /// Main thread, once. Ends every stream at what has arrived: that is still answered.
  void stop_receiving();
};

/// One client of a Qt server: pumps its session through a QTcpSocket, by the socket's signals. The socket lives in the
/// thread that this client has for itself as long as it stays; which thread that is, and what runs its event loop, is
/// up to the model, not to this class. So a service time may sleep here: no other client waits in this thread.
class QtConnection : public std::enable_shared_from_this<QtConnection> {
 public:
  /// Any thread. `fd` is a second descriptor of the client's connection. The socket closes its own as soon as the peer
  /// ends its stream, for Qt knows no half-closed connections; this one stays open for the replies still pending.
  QtConnection(UniqueFd fd, QtServerState& shared);

  /// The client's thread. From here on the socket's signals serve the client, and chat reaches it. False when the
  /// connection is over already; else `done` is called once, when there is nothing more to do, and ends the loop.
  bool start(QTcpSocket& socket, std::function<void()> done);

  /// Any thread. Takes a frame into the outbox; wake() is to follow. Ends the connection of a reader that does not read
  /// while too much waits for it. False, and nothing is taken, where as much waits because its thread has not got round
  /// to sending it, or to seeing that the peer reads again.
  [[nodiscard]] bool deliver(const SharedFrame& frame);

  /// Any thread. Has the client's thread send what was delivered, where it does not send already.
  void wake();

  /// Any thread. Ends the stream at what has arrived.
  void stop_receiving();

 private:
  // The client's thread only, all of these.
  void serve();
  bool carry_out();
  bool receive();
  void broadcast(SharedFrame frame);
  void wake_audience();
  void ring();
  void send_on();
  void send_outbox();
  bool write(std::span<const std::string_view> parts);
  bool write_blocking();
  void on_written();
  void on_all_written();
  void on_disconnected();
  void note_written();
  void end();

  QtServerState& shared_;
  const ServerOptions& options_;
  QTcpSocket* socket_ = nullptr;
  QObject* bell_ = nullptr;  // lives in the client's thread, where what is posted to it becomes a call of send_outbox
  std::function<void()> done_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<char[]> buffer_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  std::string_view reply_;
  std::span<const std::string_view> writing_;  // the parts of the write under way
  std::size_t unsent_ = 0;                     // how many bytes at the end of `writing_` the kernel has not taken yet
  bool flushing_ = false;
  bool outbox_writes_ = false;   // the write under way is the outbox's
  bool audience_waits_ = false;  // for wake_audience(), after a broadcast
  bool closing_ = false;         // the session has asked for it
  bool peer_ended_ = false;      // the socket is closed, fd_ is not; writes block from now on
  bool over_ = false;

  std::mutex mutex_;  // guards the rest; held to read and to hand over, never to write
  UniqueFd fd_;
  bool open_ = false;    // started, and neither over nor given up as slow
  bool asleep_ = false;  // its thread does not know yet that something waits in the outbox
  bool stuck_ = false;   // the peer has not taken what was last sent
  Outbox<std::string_view> outbox_;
};

}  // namespace netdyno::qt
