#include "lib/measure/process.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "lib/cli/die.hpp"
#include "lib/measure/clock.hpp"

namespace netdyno::load {
namespace {

/// A cpu_set_t has 1024 numbers, and the kernel refuses to fill one where it has more (EINVAL): CPU_ALLOC(3).
using CoreSet = std::array<cpu_set_t, core_numbers / CPU_SETSIZE>;

CpuTime cpu_of(__rusage_who who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto in_seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {in_seconds(usage.ru_utime), in_seconds(usage.ru_stime), 0};
}

/// The second number of schedstat (Documentation/scheduler/sched-stats.rst); 0 where the kernel keeps none.
double run_queue_wait_s(const std::filesystem::path& task) {
  std::ifstream schedstat{task / "schedstat"};
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  return schedstat >> ran >> waited ? static_cast<double>(waited) / 1e9 : 0;
}

/// utime and stime of stat in proc(5), which stand after the name, the state and ten numbers.
CpuTime cpu_of_task(const std::filesystem::path& task) {
  std::ifstream stat{task / "stat"};
  stat.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string skipped;
  for (int i = 0; i < 11; ++i) stat >> skipped;
  double user = 0;
  double system = 0;
  stat >> user >> system;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {user / ticks_per_second, system / ticks_per_second, run_queue_wait_s(task)};
}

}  // namespace

CpuTime thread_cpu() {
  CpuTime cpu = cpu_of(RUSAGE_THREAD);
  cpu.waited_s = run_queue_wait_s("/proc/thread-self");
  return cpu;
}

std::vector<CpuTime> cpu_of_threads_named(std::string_view name) {
  std::vector<CpuTime> found;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream comm{task.path() / "comm"};
    std::string line;
    if (std::getline(comm, line) && line == name) found.push_back(cpu_of_task(task.path()));
  }
  return found;
}

void give_way_to_the_main_thread() {
  const int policy = sched_getscheduler(0);
  sched_param parameters{};
  if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &parameters) != 0) return;
  if (parameters.sched_priority <= sched_get_priority_min(policy)) return;
  --parameters.sched_priority;
  sched_setscheduler(0, policy, &parameters);  // less is always allowed
}

void keep_descriptors_to_oneself() {
#ifndef __SANITIZE_THREAD__  // ThreadSanitizer takes descriptors of one number in two tables for one.
  [[maybe_unused]] const int not_allowed = unshare(CLONE_FILES);
#endif
}

CpuTime process_cpu() { return cpu_of(RUSAGE_SELF); }

/// VmHWM. (getrusage's ru_maxrss would do, did it not keep the size of the process that called exec: getrusage(2).)
std::uint64_t peak_rss_bytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

Nanos timer_lateness() {
  constexpr std::size_t sleeps = 30;
  constexpr Nanos length = 100'000;
  std::array<Nanos, sleeps> lateness{};
  for (Nanos& late : lateness) {
    const Nanos due = now_ns() + length;
    const timespec wake_time{due / one_second, due % one_second};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_time, nullptr);
    late = now_ns() - due;
  }
  std::sort(lateness.begin(), lateness.end());
  return std::clamp<Nanos>(lateness[sleeps * 9 / 10], 0, length);
}

std::size_t online_cores() { return static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

std::vector<int> usable_cores() {
  CoreSet set{};
  if (sched_getaffinity(0, sizeof set, set.data()) != 0) die_errno("sched_getaffinity", errno);
  std::vector<int> cores;
  for (int core = 0; core < core_numbers; ++core)
    if (CPU_ISSET_S(static_cast<std::size_t>(core), sizeof set, set.data())) cores.push_back(core);
  return cores;
}

bool bind_to_cores(const std::vector<int>& cores) {
  CoreSet set{};
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), sizeof set, set.data());
  return sched_setaffinity(0, sizeof set, set.data()) == 0;
}

}  // namespace netdyno::load
