#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace netdyno {

struct Totals {
  std::uint64_t requests = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t connections = 0;
  std::uint64_t protocol_errors = 0;
  std::uint64_t slow_closed = 0;
  std::uint64_t memory_closed = 0;
  // Transports without connections (protocol/WIRE.md).
  std::uint64_t oversized = 0;
  std::uint64_t peers_refused = 0;
  std::uint64_t peers_expired = 0;
  std::uint64_t strangers = 0;
  std::uint64_t send_dropped = 0;
  std::uint64_t receive_dropped = 0;
};

/// A server's counts. Any thread may add; the shards keep threads from sharing a cache line, so that counting is not
/// what a comparison of thread counts measures.
class Counters {
 public:
  void add_request() { add(&Shard::requests, 1); }
  void add_bytes_in(std::size_t n) { add(&Shard::bytes_in, n); }
  void add_bytes_out(std::size_t n) { add(&Shard::bytes_out, n); }
  void add_connection() { add(&Shard::connections, 1); }
  void add_protocol_error() { add(&Shard::protocol_errors, 1); }
  /// A reader that let more than the outbox limit pile up, or that a blocking send timed out on.
  void add_slow_closed() { add(&Shard::slow_closed, 1); }

  /// A client closed for lack of memory.
  void add_memory_closed() { add(&Shard::memory_closed, 1); }

  void add_oversized() { add(&Shard::oversized, 1); }
  void add_peer_refused() { add(&Shard::peers_refused, 1); }
  void add_peer_expired() { add(&Shard::peers_expired, 1); }
  void add_stranger() { add(&Shard::strangers, 1); }
  void add_send_dropped(std::size_t messages = 1) { add(&Shard::send_dropped, messages); }
  /// A message of a client that sends faster than it is served.
  void add_receive_dropped() { add(&Shard::receive_dropped, 1); }

  /// Exact once the counting threads are done; a lower bound before.
  Totals totals() const;

  /// Chooses the shard of the calling thread, modulo their number. For a forked child, which has its parent's.
  static void use_shard(std::size_t shard) { shard_of_this_thread() = shard % shard_count; }

 private:
  using Count = std::atomic<std::uint64_t>;
  struct alignas(64) Shard {
    Count requests{0}, bytes_in{0}, bytes_out{0}, connections{0}, protocol_errors{0}, slow_closed{0};
    Count memory_closed{0};
    Count oversized{0}, peers_refused{0}, peers_expired{0}, strangers{0}, send_dropped{0}, receive_dropped{0};
  };
  void add(Count Shard::*field, std::uint64_t n) {
    (shards_[shard_of_this_thread()].*field).fetch_add(n, std::memory_order_relaxed);
  }
  static std::size_t& shard_of_this_thread();

  static constexpr std::size_t shard_count = 64;
  std::array<Shard, shard_count> shards_;
};

}  // namespace netdyno
