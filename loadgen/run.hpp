#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/measure/recorder.hpp"
#include "lib/measure/timeline.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/worker.hpp"

namespace netdyno::load {

/// Receives the events of a run, on the thread that called run_load.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_connected(std::uint64_t established) = 0;
  virtual void on_window_start() = 0;
  struct Progress {
    std::uint64_t completed = 0;  // within the window, whenever they were due
    std::uint64_t answered = 0;   // of the messages that were due in the window
    Nanos elapsed = 0;            // since its start
  };
  /// Twice a second within the window.
  virtual void on_progress(const Progress& progress, const Timeline::Slot& latest) = 0;
  virtual void on_window_end() = 0;
  /// A part of a chat has sent so many messages, and will send no more.
  virtual void on_sent(std::uint64_t messages) = 0;
  /// --turns: a slice is over, in which so many messages were sent, and the machine let nothing run on a core for so
  /// long (of all its cores together); or its moment had passed before its line came.
  virtual void on_slice(std::uint64_t sent, Nanos paused) = 0;
  virtual void on_missed_slice() = 0;
  /// The last answers are in, or not waited for any more.
  virtual void on_finished() = 0;
};

/// The raw measurements of a run.
struct Measurement {
  Figures figures;
  std::vector<CpuTime> cpu;  // of each thread, over the window
  std::vector<Timeline::Slot> timeline;
  std::uint64_t max_rss_bytes = 0;
  std::size_t cores = 1;            // that this process may use
  Nanos interval = 0;               // of the timeline
  std::optional<Nanos> load_ended;  // in the window, where no connection was left then
  Nanos longest_slice = 0;          // the longest part of the window without a pause: all of it, but with --turns
  Nanos began = 0;                  // the window, by CLOCK_MONOTONIC; 0 where it never did, and with --turns
  Nanos duration = 0;          // of the window; shorter than planned where it was cut short, 0 where it never began
  std::uint64_t finished = 0;  // --messages: clients that wrote all and met no error
  bool all_joined = true;      // chat: the server knew every client before the load began
};

/// --await-go: reads the line on stdin that says when the load begins, nanoseconds of CLOCK_MONOTONIC. Ends the program
/// where there is none, or the moment has passed.
Nanos wait_for_go();

/// Whichever load the plan is of.
Measurement run_load(const LoadPlan& plan, Observer& observer);

}  // namespace netdyno::load
