#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace netdyno {

/// How long threads waited for a lock, all of them together. Any thread may call it. Only a thread that waits reads a
/// clock, so that a lock which is free costs what it costs without this.
class LockWaits {
 public:
  template <typename Mutex>
  [[nodiscard]] std::unique_lock<Mutex> lock(Mutex& mutex) {
    std::unique_lock<Mutex> held{mutex, std::try_to_lock};
    if (held.owns_lock()) return held;
    const auto began = std::chrono::steady_clock::now();
    held.lock();
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - began;
    total_ns_.fetch_add(static_cast<std::uint64_t>(waited.count()), std::memory_order_relaxed);
    return held;
  }

  std::uint64_t total_ns() const { return total_ns_; }
  /// For print_totals.
  static constexpr const char* name = "lock_wait_ns";
  std::string json() const { return std::to_string(total_ns()); }

 private:
  std::atomic<std::uint64_t> total_ns_{0};
};

}  // namespace netdyno
