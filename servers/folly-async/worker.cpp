#include "worker.hpp"

#include <utility>

namespace netdyno {
namespace {

/// The tick of the timer wheel, which a timerfd drives: EventBase's own timers count whole milliseconds.
constexpr std::chrono::microseconds tick{10};

}  // namespace

Worker::Worker(const ServerOptions& options, Counters& counters, const Workers& workers)
    : options_(options),
      counters_(counters),
      workers_(workers),
      buffer_(std::make_unique_for_overwrite<char[]>(options.read_buffer)),
      timer_fd_(&base_),
      timer_(folly::HHWheelTimerHighRes::newTimer(&timer_fd_, tick)) {}

void Worker::add_later(UniqueFd fd) {
  base_.runInEventBaseThread([this, fd = std::move(fd)]() mutable { add(std::move(fd)); });
}

void Worker::end_later() {
  base_.runInEventBaseThread([this] { end(); });
}

void Worker::add(UniqueFd fd) {
  auto connection = std::make_unique<Connection>(std::move(fd), *this);
  Connection& added = *connection;
  connections_.emplace(&added, std::move(connection));
  added.read();
}

void Worker::remove(Connection& connection) {
  auto node = connections_.extract(&connection);
  base_.runInLoop([gone = std::move(node.mapped())] {});
  leave_if_done();
}

void Worker::broadcast(const SharedFrame& frame, const Connection& sender) {
  for (const auto& worker : workers_) {
    if (worker.get() == this) {
      deliver(frame, options_.audience == Audience::others ? &sender : nullptr);
    } else {
      worker->base_.runInEventBaseThread([&receiver = *worker, frame] { receiver.deliver(frame, nullptr); });
    }
  }
}

void Worker::deliver(const SharedFrame& frame, const Connection* except) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& connection = *it++->second;  // before it may be removed
    if (&connection != except) connection.deliver(frame);
  }
}

void Worker::end() {
  ending_ = true;
  for (const auto& [unused, connection] : connections_) connection->stop_receiving();
  leave_if_done();
}

void Worker::leave_if_done() {
  if (ending_ && connections_.empty()) base_.terminateLoopSoon();
}

}  // namespace netdyno
