#include "loadgen/flight.hpp"

#include <algorithm>

namespace netdyno::load {

void Flight::intend(Nanos at_time) {
  if (size_ == capacity()) grow();
  at(first_ + size_) = {at_time, 0};
  ++size_;
  ++unsent_;
}

Nanos Flight::send(Nanos at_time) {
  Times& times = at(next_to_send());
  times.sent = at_time;
  --unsent_;
  return times.intended;
}

std::optional<Flight::Answered> Flight::answer(std::uint64_t sequence) {
  if (sequence < first_) return answer_overtaken(sequence);
  if (sequence >= next_to_send()) return std::nullopt;
  Times& slot = at(sequence);
  if (slot.intended == answered_mark) return std::nullopt;
  const Answered answered{slot, sequence < expired_to_};
  if (answered.expired) --overdue_;
  slot.intended = answered_mark;
  ++answered_in_ring_;
  drop_front();
  return answered;
}

void Flight::drop_front() {
  while (size_ > 0 && answered_in_ring_ > 0) {
    const bool answered = at(first_).intended == answered_mark;
    if (!answered && answered_in_ring_ < longest_overtaking) return;
    if (answered) {
      --answered_in_ring_;
    } else {
      if (!overtaken_) overtaken_ = std::make_unique<std::map<std::uint64_t, Times>>();
      overtaken_->emplace(first_, at(first_));
    }
    ++first_;
    --size_;
  }
}

std::optional<Flight::Answered> Flight::answer_overtaken(std::uint64_t sequence) {
  if (!overtaken_) return std::nullopt;
  const auto found = overtaken_->find(sequence);
  if (found == overtaken_->end()) return std::nullopt;
  const Answered answered{found->second, sequence < expired_to_};
  if (answered.expired) --overdue_;
  overtaken_->erase(found);
  return answered;
}

void Flight::grow() {
  std::vector<Times> larger(2 * capacity());
  for (std::uint64_t sequence = first_; sequence < first_ + size_; ++sequence)
    larger[sequence & (larger.size() - 1)] = at(sequence);
  ring_ = std::move(larger);
}

}  // namespace netdyno::load
