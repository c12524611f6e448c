#include "loadgen/match/flight.hpp"

#include <utility>

namespace netdyno::load {

std::optional<Flight::Answered> Flight::answer_out_of_order(std::uint64_t sequence) {
  if (sequence < first_) return answer_overtaken(sequence);
  if (sequence >= next_to_send()) return std::nullopt;
  Times& slot = times_of(sequence);
  if (slot.intended == answered_mark) return std::nullopt;
  const Answered answered = take(slot, sequence);
  slot.intended = answered_mark;
  ++answered_in_ring_;
  drop_front();
  return answered;
}

std::optional<Flight::Answered> Flight::answer_overtaken(std::uint64_t sequence) {
  if (!overtaken_) return std::nullopt;
  const auto message = overtaken_->extract(sequence);
  if (!message) return std::nullopt;
  return take(message.mapped(), sequence);
}

std::uint64_t Flight::forget_unsent(Nanos deadline) {
  std::uint64_t count = 0;
  for (; unsent_ > 0 && unsent_ == size_ && times_of(first_).intended < deadline; ++count) {
    ++first_;
    --size_;
    --unsent_;
  }
  return count;
}

void Flight::drop_front() {
  while (size_ > 0 && answered_in_ring_ > 0) {
    const bool answered = times_of(first_).intended == answered_mark;
    if (!answered && answered_in_ring_ < longest_overtaking) return;
    if (answered) {
      --answered_in_ring_;
    } else {
      if (!overtaken_) overtaken_ = std::make_unique<std::map<std::uint64_t, Times>>();
      overtaken_->emplace(first_, times_of(first_));
    }
    ++first_;
    --size_;
  }
}

void Flight::grow() {
  std::vector<Times> larger(2 * capacity());
  for (std::uint64_t sequence = first_; sequence < first_ + size_; ++sequence)
    larger[sequence & (larger.size() - 1)] = times_of(sequence);
  ring_ = std::move(larger);
}

}  // namespace netdyno::load
