#include "loadgen/connect/loop_clock.hpp"

#include <fstream>
#include <string>

namespace netdyno::load {
namespace {

// A rate is measured over so long. The readings are right to some 10 ns, so the first is right to a few millionths;
// another one every so often, as the system's clock is steered (adjtimex(2)), by 500 millionths at most.
constexpr Nanos soon = 10'000'000;
constexpr Nanos often = one_second;
constexpr std::uint64_t together = 4'000;  // counts between two readings that nothing came between: 1 to 2 us

}  // namespace

bool LoopClock::counter_is_the_clock() {
#ifdef __x86_64__
  std::string name;
  std::ifstream{"/sys/devices/system/clocksource/clocksource0/current_clocksource"} >> name;
  return name == "tsc";
#else
  return false;
#endif
}

Nanos LoopClock::turn() {
  if (!counting_) return latest_ = now_ns();
  const std::uint64_t before = counter();
  const Nanos now = now_ns();
  const std::uint64_t after = counter();
  latest_ = std::max(latest_, now);
  if (after - before > together) {
    rate_ = 0;  // which count belongs to this time is not known: until the next turn, ask the system
    return latest_;
  }
  turn_counter_ = before + (after - before) / 2;
  turn_at_ = now;
  if (base_at_ == 0) {
    base_counter_ = turn_counter_;
    base_at_ = now;
  }
  if (now - base_at_ >= (measured_rate_ == 0 ? soon : often)) {
    const auto counts = static_cast<double>(turn_counter_ - base_counter_);
    measured_rate_ = static_cast<std::uint64_t>(static_cast<double>(now - base_at_) / counts * (1ULL << rate_bits));
    base_counter_ = turn_counter_;
    base_at_ = now;
  }
  rate_ = measured_rate_;
  return latest_;
}

}  // namespace netdyno::load
