#pragma once

#include "lib/session/counters.hpp"

namespace netdyno {

/// Counters in memory that a process shares with the children that it forks (lib/server/children.hpp). Its totals have
/// what all of them counted, those that crashed or were killed included.
class SharedCounters {
 public:
  /// Dies when there is no memory for it.
  SharedCounters();
  ~SharedCounters();
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;

  Counters& get() const { return *counters_; }

 private:
  Counters* counters_;
};

}  // namespace netdyno
