// Qt, a thread per client: each QTcpSocket is moved to a QThread of its own and served there by signals and slots.
#include <fcntl.h>

#include <QDeadlineTimer>
#include <QTcpServer>
#include <QThread>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <utility>
#include <vector>

#include "lib/server/application_tick.hpp"
#include "lib/server/thread_sanitizer.hpp"
#include "servers/_shared/qt/accept_gate.hpp"
#include "servers/_shared/qt/application.hpp"
#include "servers/_shared/qt/connection.hpp"

namespace netdyno {
namespace {

using qt::QtConnection;
using qt::QtServerState;

/// A client's thread. This object itself belongs to the main thread, as every QThread does to the one that made it;
/// the socket, and so all that its signals call, belong to the thread.
class Client : public QThread {
 public:
  /// Main thread.
  Client(std::unique_ptr<QTcpSocket> socket, UniqueFd fd, QtServerState& shared)
      : socket_(std::move(socket)), connection_(std::make_shared<QtConnection>(std::move(fd), shared)) {
    socket_->setParent(nullptr);  // an object with a parent stays in the parent's thread
    socket_->moveToThread(this);
  }

  /// Main thread. False when no more threads are to be had. When it returns true, the thread runs: its event loop has
  /// opened the descriptor that it needs.
  bool start_and_wait() {
    start();
    if (!isRunning() && !isFinished()) return false;
    running_.acquire();
    return true;
  }

 private:
  void run() override {
    running_.release();
    if (connection_->start(*socket_, [this] { quit(); })) exec();
    socket_.reset();  // in its own thread
    connection_.reset();
  }

  std::unique_ptr<QTcpSocket> socket_;
  std::shared_ptr<QtConnection> connection_;
  std::binary_semaphore running_{0};
};

/// Main thread only.
class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener) : shared_{options, {}, {}} {
    QObject::connect(&server_, &QTcpServer::newConnection, &server_, [this] {
      take_in();
      if (accept_until_.hasExpired()) return gate_.close();
      gate_.update_in_turn();  // a flood must not keep threads that have ended, or a signal, from being seen
    });
    if (!server_.setSocketDescriptor(listener.get())) die("Qt cannot listen: " + server_.errorString().toStdString());
    listener.release();
    gate_.update();
  }

  /// Ends every stream at what has arrived, and waits for the threads; false when the grace ran out.
  bool finish() {
    const QDeadlineTimer grace_ends{shutdown_grace};
    accept_until_ = QDeadlineTimer{shutdown_grace / 2};
    while (!accept_until_.hasExpired() && take_in_more()) {
    }
    server_.close();
    shared_.stop_receiving();
    return std::ranges::all_of(clients_, [&](const auto& client) { return wait_for(*client, grace_ends); });
  }

  Totals totals() const { return shared_.counters.totals(); }

 private:
  /// Connected clients have been promised an answer, as far as there is time for it.
  bool take_in_more() {
    gate_.update();
    return server_.waitForNewConnection(0);
  }

  static bool wait_for(QThread& thread, QDeadlineTimer until) {
    const bool ended = thread.wait(until);
    if (ended) handed_over(&thread);
    return ended;
  }

  /// Its socket's, a second one of the connection, and the one that wakes its thread's event loop.
  static constexpr std::size_t descriptors_per_client = 3;

  void take_in() {
    std::unique_ptr<QTcpSocket> socket{server_.nextPendingConnection()};
    const int descriptor = static_cast<int>(socket->socketDescriptor());
    UniqueFd fd{fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
    if (!fd) return;  // the connection broke while it was taken in: this client is closed, the others go on
    set_nodelay(descriptor, shared_.options.nodelay);
    shared_.counters.add_connection();
    start(std::make_unique<Client>(std::move(socket), std::move(fd), shared_));
  }

  void start(std::unique_ptr<Client> client) {
    QThread* const thread = client.get();
    QObject::connect(thread, &QThread::finished, &server_, [this, thread] {
      wait_for(*thread, QDeadlineTimer::Forever);
      std::erase_if(clients_, [=](const auto& candidate) { return candidate.get() == thread; });
    });
    // After the one above, which is queued: so the event that it posts is among what is handed over.
    const auto last = [thread] { handing_over(thread); };
    QObject::connect(thread, &QThread::finished, thread, last, Qt::DirectConnection);
    if (client->start_and_wait()) clients_.push_back(std::move(client));  // or it is closed, and the others go on
  }

  QtServerState shared_;
  std::vector<std::unique_ptr<Client>> clients_;
  QTcpServer server_;
  qt::AcceptGate gate_{server_, descriptors_per_client};
  QDeadlineTimer accept_until_{QDeadlineTimer::Forever};
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  ApplicationTick tick;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::per_connection, "tcp",
                                                     [&](CommandLine& line) { tick.add_option(line); });
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  qt::QtApplication application;
  Server server{options, std::move(listener)};
  announce_ready(endpoint);

  application.run_until(stop.get(), tick);
  const bool all_gone = server.finish();
  tick.print_totals(server.totals());
  if (!all_gone) std::_Exit(0);  // a thread still works for its client, or is blocked in it; the totals are out
}
