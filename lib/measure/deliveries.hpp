#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace netdyno::load {

/// The messages each receiver has had from each sender: 4 bytes for each pair (1,000 connections in a chat: 4 MB),
/// and what is missing beside that. Owning thread only.
class Deliveries {
 public:
  enum class Verdict {
    in_order,
    late,  // for the first time, after a later one of the same sender
    again  // it had come before
  };

  Deliveries(std::size_t receivers, std::size_t senders) : senders_(senders), next_(receivers * senders) {}

  Verdict note(std::size_t receiver, std::size_t sender, std::uint64_t sequence) {
    const std::size_t pair = receiver * senders_ + sender;
    // The low 32 bits are kept; the difference restores the rest as long as nothing skips 2^31 messages.
    const auto ahead = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - next_[pair]);
    if (ahead < 0) return was_missing(pair, sequence) ? Verdict::late : Verdict::again;
    if (ahead > 0) add_missing(pair, sequence - static_cast<std::uint64_t>(ahead), sequence);
    next_[pair] = static_cast<std::uint32_t>(sequence + 1);
    return Verdict::in_order;
  }

 private:
  /// Ranges of sequence numbers: first to one past the last.
  using Ranges = std::map<std::uint64_t, std::uint64_t>;

  void add_missing(std::size_t pair, std::uint64_t first, std::uint64_t end) { missing_[pair].emplace(first, end); }
  /// Takes `sequence` out of what is missing; false when it was not.
  bool was_missing(std::size_t pair, std::uint64_t sequence);

  std::size_t senders_;
  std::vector<std::uint32_t> next_;
  std::unordered_map<std::size_t, Ranges> missing_;
};

}  // namespace netdyno::load
