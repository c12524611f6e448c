#pragma once

#include <cstddef>
#include <cstdint>

namespace netdyno::load {

/// What a thread or the process used of the machine, and how long it stood ready to run while something else had its
/// core.
struct CpuTime {
  double user_s = 0;
  double system_s = 0;
  double waited_s = 0;
};

/// Of the calling thread since it began. 0 for `waited_s` where the kernel keeps none.
CpuTime thread_cpu();

/// Of all threads of the process, without `waited_s`.
CpuTime process_cpu();

/// Peak resident memory over the life of the process.
std::uint64_t peak_rss_bytes();

/// Cores that this process may use.
std::size_t usable_cores();

}  // namespace netdyno::load
