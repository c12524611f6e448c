#pragma once

#include <chrono>

#include "lib/server/counted_send.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/session/session.hpp"

namespace netdyno {

/// Carries out effects for a client that knows of no others: those of a broadcast are of chat, which main refuses.
/// Blocks the thread that serves it. `burn(duration)` returns false where the grace was over before. False when the
/// client is done with.
template <class Burn>
bool carry_out(const Effects& effects, int fd, Counters& counters, Burn burn) {
  for (const Effect& effect : effects) {
    switch (effect.kind) {
      case Effect::Kind::write:
        if (!send_counted(fd, effects.bytes(effect), Patience::while_it_reads, counters)) return false;
        break;
      case Effect::Kind::broadcast:
        break;
      case Effect::Kind::wait:
        if (!wait_unless_reset(fd, effect.remaining())) return false;
        break;
      case Effect::Kind::burn:
        if (!burn(effect.duration)) return false;
        break;
      case Effect::Kind::close:
        return false;
    }
  }
  return true;
}

/// The same where nothing ends a burn before its time.
inline bool carry_out(const Effects& effects, int fd, Counters& counters) {
  return carry_out(effects, fd, counters, [](std::chrono::nanoseconds duration) {
    burn_cpu(duration);
    return true;
  });
}

}  // namespace netdyno
