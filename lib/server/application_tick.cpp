#include "lib/server/application_tick.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "lib/cli/option_values.hpp"
#include "lib/measure/distribution.hpp"
#include "lib/server/lifecycle.hpp"

namespace netdyno {

void ApplicationTick::add_option(CommandLine& line) {
  add_choice(line, "--application-tick", on_, {{"on", true}, {"off", false}},
             "a 10 ms timer in the main thread's loop; the totals say how late it was");
}

void ApplicationTick::start() {
  if (on_) ticks_.emplace(load::now_ns());
}

std::optional<std::chrono::nanoseconds> ApplicationTick::time_left() const {
  if (!ticks_) return std::nullopt;
  return std::chrono::nanoseconds{std::max(ticks_->due() - load::now_ns(), load::Nanos{0})};
}

void ApplicationTick::record() {
  if (ticks_) ticks_->record(load::now_ns());
}

void ApplicationTick::run_until(int stop) {
  start();
  for (pollfd stop_signal{stop, POLLIN, 0}; stop_signal.revents == 0; record()) {
    timespec timeout{};  // less than a second: an interval at most
    const auto left = time_left();
    if (left) timeout.tv_nsec = left->count();
    ppoll(&stop_signal, 1, left ? &timeout : nullptr, nullptr);
  }
}

void ApplicationTick::print_totals(const Totals& totals) const {
  if (!ticks_) return netdyno::print_totals(totals);
  netdyno::print_totals(totals, "tick_lag_ns", distribution(ticks_->lag()).dump());
}

}  // namespace netdyno
