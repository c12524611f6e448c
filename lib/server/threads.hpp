#pragma once

#include <string>
#include <system_error>

#include "lib/cli/die.hpp"

namespace netdyno {

/// Calls `start`, which starts the threads that were asked for; where the system has no more, it ends the program and
/// says what to do.
template <typename Start>
void start_or_die(Start&& start) {
  try {
    start();
  } catch (const std::system_error& error) {
    die(std::string{"cannot start a thread: "} + error.what() + "; ask for fewer --threads, or raise ulimit -u");
  }
}

}  // namespace netdyno
