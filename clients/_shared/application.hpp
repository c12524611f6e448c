#pragma once

#include <cstdint>

#include "clients/_shared/journal.hpp"
#include "lib/measure/process.hpp"
#include "lib/measure/tick_lag.hpp"
#include "loadgen/report/display.hpp"

namespace netdyno::client {

/// The application that the client is part of: it has a timer of 10 ms, whose lateness shows whether its loop is ever
/// blocked, and it tells the time of the run. The client's own loop drives it: wake() whenever due() has come.
/// Application's thread only.
class Application {
 public:
  /// Takes from the journal, before finish(), only what any thread may.
  Application(const ClientPlan& plan, Journal& journal);

  /// When wake() is due next.
  Nanos due() const;
  void wake();

  /// The first attempts have ended.
  void connected(std::uint64_t established);
  /// The load starts.
  void begin(const load::Window& window);

  /// When the loop and the thread of the journal have ended: the last reading of the clock, then the result. Returns
  /// the program's exit code.
  int finish();

 private:
  void cross_boundary();
  load::CpuTime cpu_since_start() const;

  const ClientPlan& plan_;
  Journal& journal_;
  load::Display display_;
  TickLag ticks_;
  load::Window window_;
  Nanos boundary_ = load::never;  // the next of window start, window end
  Nanos progress_ = load::never;
  load::CpuTime cpu_at_start_;
  load::CpuTime cpu_;
};

}  // namespace netdyno::client
