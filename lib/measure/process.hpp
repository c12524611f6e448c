#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// The CPU time that a thread or the process used, and how long it stood ready to run while something else had its
/// core.
struct CpuTime {
  double user_s = 0;
  double system_s = 0;
  double waited_s = 0;
  double spun_s = 0;  // of the first two: spent polling for a moment that is near
};

/// Between two readings of the same thread.
inline CpuTime operator-(const CpuTime& later, const CpuTime& earlier) {
  return {later.user_s - earlier.user_s, later.system_s - earlier.system_s, later.waited_s - earlier.waited_s,
          later.spun_s - earlier.spun_s};
}

inline CpuTime& operator+=(CpuTime& sum, const CpuTime& more) {
  sum = {sum.user_s + more.user_s, sum.system_s + more.system_s, sum.waited_s + more.waited_s,
         sum.spun_s + more.spun_s};
  return sum;
}

/// The use of the calling thread since it began. `waited_s` is 0 where the kernel does not count it.
CpuTime thread_cpu();

/// The same of the threads of this process that are called so (comm in proc(5)), one after the other. Moves in ticks of
/// 10 ms.
std::vector<CpuTime> cpu_of_threads_named(std::string_view name);

/// The use of all threads of the process, without `waited_s`.
CpuTime process_cpu();

/// Peak resident memory over the life of the process.
std::uint64_t peak_rss_bytes();

/// Steps one below the priority it was started with, where that is a real-time one: under SCHED_FIFO a thread that is
/// never done lets none of its own priority run on its core (sched(7)), and so not the one that announces the window.
void give_way_to_the_main_thread();

/// Gives the calling thread a table of descriptors of its own, a copy of the one it shared (unshare(2), CLONE_FILES).
/// The kernel then takes no reference to the file at each call, which costs a program with threads two atomic
/// operations in each send and each recv (fdget in fs/file.c, Linux 6.18). What it opens from then on only it can use
/// and has to close. Where that is not allowed, as in some containers, the calls cost what they cost.
void keep_descriptors_to_oneself();

/// How late this machine's timers wake a thread: the 90th percentile of a few short sleeps, 100 us at most. Takes about
/// 5 ms.
Nanos timer_lateness();

/// Cores that the machine has.
std::size_t online_cores();

/// The cores that the calling thread may use.
std::vector<int> usable_cores();

/// The highest number that a core can have, and one more (the largest CONFIG_NR_CPUS, of x86 with MAXSMP).
constexpr int core_numbers = 8192;

/// Binds the calling thread to these cores (sched_setaffinity(2)). False, with errno, where it may use none of them.
bool bind_to_cores(const std::vector<int>& cores);

}  // namespace netdyno::load
