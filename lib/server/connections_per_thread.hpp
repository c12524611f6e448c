#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netdyno {

/// How many connections each thread of a server got that stay with their thread. Any thread may add.
class ConnectionsPerThread {
 public:
  explicit ConnectionsPerThread(int threads) : counts_(static_cast<std::size_t>(threads)) {}

  void add(std::size_t thread) { counts_[thread].fetch_add(1, std::memory_order_relaxed); }

  /// For print_totals.
  static constexpr const char* name = "connections_per_thread";
  std::string json() const {
    std::string list;
    for (const auto& count : counts_) list += (list.empty() ? "" : ",") + std::to_string(count);
    return "[" + list + "]";
  }

 private:
  std::vector<std::atomic<std::uint64_t>> counts_;
};

}  // namespace netdyno
