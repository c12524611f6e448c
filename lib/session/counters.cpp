#include "lib/session/counters.hpp"

namespace netdyno {

std::size_t& Counters::shard_of_this_thread() {
  static std::atomic<std::size_t> next{0};
  thread_local std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % shard_count;
  return mine;
}

Totals Counters::totals() const {
  Totals sum;
  for (const Shard& shard : shards_) {
    sum.requests += shard.requests;
    sum.bytes_in += shard.bytes_in;
    sum.bytes_out += shard.bytes_out;
    sum.connections += shard.connections;
    sum.protocol_errors += shard.protocol_errors;
    sum.slow_closed += shard.slow_closed;
    sum.memory_closed += shard.memory_closed;
    sum.oversized += shard.oversized;
    sum.peers_refused += shard.peers_refused;
    sum.peers_expired += shard.peers_expired;
    sum.strangers += shard.strangers;
    sum.send_dropped += shard.send_dropped;
    sum.receive_dropped += shard.receive_dropped;
  }
  return sum;
}

}  // namespace netdyno
