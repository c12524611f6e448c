#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/measure/process.hpp"
#include "lib/measure/recorder.hpp"
#include "loadgen/connect/connecting.hpp"
#include "loadgen/connect/message_writer.hpp"
#include "loadgen/connect/slow_readers.hpp"
#include "loadgen/giving_up.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/match/matching.hpp"
#include "loadgen/receiving.hpp"
#include "loadgen/sending.hpp"
#include "loadgen/thread_parts.hpp"
#include "loadgen/transport/transport.hpp"
#include "loadgen/waiting.hpp"

namespace netdyno::load {

/// One thread of the generator: an event loop of its own over its share of the connections. It connects all of them and
/// waits for the common start (Connecting); then each turn of the loop sends what is due (Sending), gives up what is
/// late (GivingUp), and waits (Waiting) for what arrives (Receiving, Matching). Owns what these share, the window and
/// the figures.
class Worker {
 public:
  Worker(const LoadPlan& plan, const ThreadShare& share, Control& control, Timeline& timeline);

  /// The body of the thread.
  void run();

  /// Any thread: ends a wait, so that the worker reads its Control.
  void wake() { transport_->wake(); }
  /// Any thread: messages answered within the window so far.
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  /// Any thread: messages that were meant for the window and are answered so far.
  std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }

  /// When run() has returned.
  const Figures& figures() const { return figures_; }
  /// This thread's, then that of the threads of its transport; of the last slice. Also while it waits for the next one.
  const std::vector<CpuTime>& cpu_in_window() const { return cpu_; }

 private:
  void connect();
  void measure(Nanos start);
  void begin(Nanos start);
  void wait();
  void finish();
  void leave();

  Nanos await_next_slice(Nanos last);
  void settle(bool counts);
  std::unique_ptr<Schedule> schedule_slice() const;
  void exclude_slow_readers();

  void end_early();
  void end_window(Nanos end);
  void cross_boundary();
  Nanos next_wakeup() const;
  void publish_progress();

  const LoadPlan& plan_;
  Control& control_;
  const std::unique_ptr<Codec> codec_;
  const std::unique_ptr<Transport> transport_;
  LoopState loop_;
  Recorder recorder_;
  Figures figures_;  // of all slices before the one that the recorder has
  MessageWriter writer_;
  Clients clients_;
  Connecting connecting_;
  Matching matching_;
  SlowReaders slow_readers_;
  const ThreadParts parts_;
  Waiting waiting_;
  Sending sending_;
  Receiving receiving_;
  GivingUp giving_up_;

  Nanos boundary_ = never;                              // the next of window start, window end
  std::vector<CpuTime> cpu_ = std::vector<CpuTime>(1);  // in the window; while that lasts, before it
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> answered_{0};
};

}  // namespace netdyno::load
