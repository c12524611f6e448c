#pragma once

#include <chrono>
#include <optional>

#include "lib/measure/tick_lag.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

class CommandLine;

/// The application that a server runs beside. All there is of it is a 10 ms timer in the loop of the main thread, where
/// --application-tick asks for it: its lag shows whether the server blocks that loop. Main thread only.
class ApplicationTick {
 public:
  /// It must outlive the parsing.
  void add_option(CommandLine& line);

  /// The loop begins.
  void start();
  /// How long until the next tick is due, 0 when it is late; none without ticks.
  std::optional<std::chrono::nanoseconds> time_left() const;
  /// To be called when that time is over, and when the loop ends.
  void record();

  /// The whole loop of a main thread that has nothing to do until `stop` is readable.
  void run_until(int stop);

  /// Prints the line of totals that ends a server's life, with the lag of the ticks if there were any.
  void print_totals(const Totals& totals) const;

 private:
  bool on_ = false;
  std::optional<TickLag> ticks_;
};

}  // namespace netdyno
