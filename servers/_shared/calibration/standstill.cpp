#include "servers/_shared/calibration/standstill.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace netdyno::calibration {
namespace {

using Clock = Record::Clock;

/// The last stretch is spent asking the clock, as a timer ends a sleep some 50 us late.
void sleep_until(Clock::time_point end, std::chrono::nanoseconds look_out, int signals) {
  pollfd stop_signal{signals, POLLIN, 0};
  for (auto left = end - Clock::now(); left.count() > 0; left = end - Clock::now()) {
    const auto sleep = std::max(left - look_out, Clock::duration{0});
    const auto s = std::chrono::duration_cast<std::chrono::seconds>(sleep);
    const timespec timeout{s.count(), (sleep - s).count()};
    if (ppoll(&stop_signal, 1, &timeout, nullptr) > 0) return;
  }
}

}  // namespace

void stand_still(const Programme& programme, Clock::time_point first_request, int signals, Record& record) {
  const auto now = Clock::now();
  for (const Stall& stall : programme.stalls) {
    const auto begin = first_request + stall.begin;
    const auto end = begin + stall.duration;
    if (stall.connection || begin > now || end <= now) continue;
    sleep_until(end, programme.look_out, signals);
    record.note_stall(stall, now, Clock::now());
  }
}

}  // namespace netdyno::calibration
