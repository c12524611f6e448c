// Qt, a thread pool: each client is a QRunnable that runs a QEventLoop, and so keeps its pool thread until it leaves.
#include <fcntl.h>

#include <QEventLoop>
#include <QRunnable>
#include <QTcpServer>
#include <QThreadPool>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>

#include "lib/server/application_tick.hpp"
#include "lib/server/thread_sanitizer.hpp"
#include "servers/_shared/qt/accept_gate.hpp"
#include "servers/_shared/qt/application.hpp"
#include "servers/_shared/qt/connection.hpp"

namespace netdyno {
namespace {

using qt::QtConnection;
using qt::QtServerState;

/// A client as a task of the pool; the pool destroys it when it is done.
class Client : public QRunnable {
 public:
  /// Main thread. `present` counts clients that are served or wait to be.
  Client(UniqueFd accepted, UniqueFd second, QtServerState& shared, std::atomic<int>& present)
      : accepted_(std::move(accepted)),
        connection_(std::make_shared<QtConnection>(std::move(second), shared)),
        present_(present) {
    ++present_;
  }

  ~Client() override { --present_; }

  /// A pool thread. The socket is made in the thread that serves it, so it needs not be moved.
  void run() override {
    handed_over(this);
    QTcpSocket socket;
    QEventLoop loop;
    if (socket.setSocketDescriptor(accepted_.get())) accepted_.release();
    if (connection_->start(socket, [&loop] { loop.quit(); })) loop.exec();
  }

 private:
  UniqueFd accepted_;
  std::shared_ptr<QtConnection> connection_;
  std::atomic<int>& present_;
};

/// Main thread only.
class Server : public QTcpServer {
 public:
  Server(const ServerOptions& options, UniqueFd listener) : shared_{options, {}, {}} {
    if (!setSocketDescriptor(listener.get())) die("Qt cannot listen: " + errorString().toStdString());
    listener.release();
    gate_.update();
  }

  /// Returns when all threads run: left to itself the pool starts each only when a client needs it. None ends for want
  /// of work.
  void start_threads() {
    const int threads = shared_.options.threads;
    pool_.setMaxThreadCount(threads);
    pool_.setExpiryTimeout(-1);
    if (qt::spare_descriptors(static_cast<std::size_t>(threads)).size() < static_cast<std::size_t>(threads))
      die("each thread needs a descriptor; ask for fewer --threads, or raise ulimit -n");
    const auto muster = std::make_shared<Muster>();
    for (int i = 0; i < threads; ++i)
      pool_.start([muster] {
        muster->here.release();
        muster->all_here.wait();
      });
    for (int i = 0; i < threads; ++i)
      if (!muster->here.try_acquire_for(std::chrono::seconds{5}))
        die("cannot start all threads; ask for fewer --threads, or raise ulimit -u");
    muster->all_here.count_down();
  }

  /// Ends every stream at what has arrived, and waits for the pool; false when the grace ran out.
  bool finish() {
    waitForNewConnection(0);  // connected clients have been promised an answer
    close();
    shared_.stop_receiving();
    return pool_.waitForDone(std::chrono::milliseconds{shutdown_grace}.count()) && present_ == 0;
  }

  Totals totals() const { return shared_.counters.totals(); }

 private:
  struct Muster {
    std::counting_semaphore<> here{0};
    std::latch all_here{1};
  };

  void incomingConnection(qintptr descriptor) override {
    take_in(UniqueFd{static_cast<int>(descriptor)});
    gate_.update();
  }

  void take_in(UniqueFd accepted) {
    UniqueFd second{fcntl(accepted.get(), F_DUPFD_CLOEXEC, 0)};
    if (!second) return;
    set_nodelay(accepted.get(), shared_.options.nodelay);
    shared_.counters.add_connection();
    const auto client = new Client{std::move(accepted), std::move(second), shared_, present_};
    handing_over(client);
    pool_.start(client);
  }

  /// As many as the threads are served; as many more as the backlog wait in the pool's queue, and then in the kernel's.
  bool has_room() const { return present_ < shared_.options.threads + shared_.options.backlog; }

  /// Its socket's, and a second one of the connection. The threads have theirs.
  static constexpr std::size_t descriptors_per_client = 2;

  QtServerState shared_;
  std::atomic<int> present_ = 0;
  QThreadPool pool_;
  qt::AcceptGate gate_{*this, descriptors_per_client, [this] { return has_room(); }};
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  ApplicationTick tick;
  const ServerOptions options =
      parse_server_options(argc, argv, ThreadModel::any, "tcp", [&](CommandLine& line) { tick.add_option(line); });
  const UniqueFd stop = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  qt::QtApplication application;
  Server server{options, std::move(listener)};
  server.start_threads();
  announce_ready(endpoint);

  application.run_until(stop.get(), tick);
  const bool all_gone = server.finish();
  tick.print_totals(server.totals());
  if (!all_gone) std::_Exit(0);  // a thread still works for its client, or is blocked in it; the totals are out
}
