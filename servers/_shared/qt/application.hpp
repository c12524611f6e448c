#pragma once

#include <QCoreApplication>

#include "lib/server/application_tick.hpp"

namespace netdyno::qt {

/// Qt's application object. It sees none of the program's arguments: those are parsed, and Qt would take some away.
class QtApplication {
 public:
  QtApplication();

  /// Main thread. Runs the event loop, with the ticks in it, until the descriptor `stop` is readable.
  void run_until(int stop, ApplicationTick& tick);

 private:
  int count_ = 1;
  char name_[8] = "netdyno";
  char* arguments_[2] = {name_, nullptr};
  QCoreApplication application_;
};

}  // namespace netdyno::qt
