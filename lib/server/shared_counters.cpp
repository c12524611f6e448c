#include "lib/server/shared_counters.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>

#include "lib/cli/die.hpp"

namespace netdyno {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock in shared memory would not work across fork");

SharedCounters::SharedCounters() {
  void* memory = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die_errno("cannot map the counters that processes share", errno);
  counters_ = new (memory) Counters;
}

SharedCounters::~SharedCounters() {
  std::destroy_at(counters_);
  munmap(counters_, sizeof(Counters));
}

}  // namespace netdyno
