#pragma once

#include <folly/io/async/EventBase.h>
#include <folly/io/async/HHWheelTimer.h>
#include <folly/io/async/STTimerFDTimeoutManager.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "connection.hpp"
#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"
#include "lib/session/effects.hpp"

namespace netdyno {

/// A thread's EventBase and the connections that live there. On that thread only, but for the constructor, run() and
/// what says otherwise.
class Worker {
 public:
  using Workers = std::vector<std::unique_ptr<Worker>>;

  /// `workers` must be complete before the first one runs.
  Worker(const ServerOptions& options, Counters& counters, const Workers& workers);

  /// Turns this thread into the worker's, until end() was called and all connections are gone.
  void run() { base_.loopForever(); }

  /// Any thread. What one thread calls happens in that order.
  void add_later(UniqueFd fd);
  void end_later();

  /// To all connections of all workers, in the order of this worker's calls.
  void broadcast(const SharedFrame& frame, const Connection& sender);

  /// Forgets a connection that is closed. It is destroyed when its callbacks have returned.
  void remove(Connection& connection);

  folly::EventBase& base() { return base_; }
  folly::HHWheelTimerHighRes& timer() { return *timer_; }
  const ServerOptions& options() const { return options_; }
  Counters& counters() { return counters_; }  // any thread

  /// Shared by all connections: what a read brought is given to the session before the next one.
  std::span<char> buffer() { return {buffer_.get(), options_.read_buffer}; }

 private:
  void add(UniqueFd fd);
  void end();
  void deliver(const SharedFrame& frame, const Connection* except);
  void leave_if_done();

  const ServerOptions& options_;
  Counters& counters_;
  const Workers& workers_;
  std::unique_ptr<char[]> buffer_;
  std::unordered_map<const Connection*, std::unique_ptr<Connection>> connections_;
  bool ending_ = false;
  folly::EventBase base_;  // after what the functions in its queue use: its destructor still calls them
  folly::STTimerFDTimeoutManager timer_fd_;
  folly::HHWheelTimerHighRes::UniquePtr timer_;
};

}  // namespace netdyno
