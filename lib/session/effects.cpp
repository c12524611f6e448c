#include "lib/session/effects.hpp"

#include <ctime>

namespace netdyno {
namespace {

std::chrono::nanoseconds thread_cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace

void Effects::write(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool joins = mode_ == WriteMode::gathered && !list_.empty() && list_.back().kind == Effect::Kind::write;
  if (joins) {
    list_.back().size += bytes.size();
  } else {
    list_.push_back({.kind = Effect::Kind::write, .offset = storage_.size(), .size = bytes.size()});
  }
  storage_.append(bytes);
}

void Effects::reply(std::string_view header, std::string_view body) {
  write(header);
  write(body);
}

void Effects::serve(ServiceKind kind, std::chrono::nanoseconds duration) {
  if (duration.count() == 0) return;
  list_.push_back({.kind = kind == ServiceKind::cpu ? Effect::Kind::burn : Effect::Kind::wait, .duration = duration});
}

void burn_cpu(std::chrono::nanoseconds duration) {
  using Clock = std::chrono::steady_clock;
  const auto end = thread_cpu_time() + duration;
  // The thread's CPU clock is a system call and would make kernel work of it; the steady clock is read in user mode
  // (vdso(7)). So it spins on that one, and asks the other only whether it was preempted meanwhile.
  for (auto left = duration; left.count() > 0; left = end - thread_cpu_time()) {
    const auto until = Clock::now() + left;
    while (Clock::now() < until) {
    }
  }
}

}  // namespace netdyno
