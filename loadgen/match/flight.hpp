#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// The messages of one connection that are not answered yet, sent or not, by consecutive sequence numbers: 16 bytes
/// each. What was meant to be sent stays until it is answered, so the debt of a schedule is never lost. A message whose
/// answer was overtaken by a thousand others moves to a map, so one lost message does not hold the memory of all that
/// follow. Owning thread only.
class Flight {
 public:
  struct Times {
    Nanos intended;
    Nanos sent;
  };

  struct Answered {
    Times times;
    bool expired;  // expire() has counted it before
  };

  /// A message joins the queue.
  void intend(Nanos intended);

  std::uint64_t unsent() const { return unsent_; }
  /// The sequence number that is sent next.
  std::uint64_t next_to_send() const { return first_ + size_ - unsent_; }
  /// The next one goes out; returns when it was meant to.
  Nanos send(Nanos sent_at);

  /// The times of a message that was sent and not yet answered, which from now on it is; else nothing.
  std::optional<Answered> answer(std::uint64_t sequence);

  /// Where answers come in order: the sent message whose answer comes next. Only where there is one.
  std::uint64_t oldest() const { return first_; }
  Nanos oldest_sent() { return times_of(first_).sent; }

  /// Where answers come in order: those that were sent wait to be sent again, and `visit` gets their times. But those
  /// that have expired are out of it; returns how many.
  template <typename Visit>
  std::uint64_t take_back(Visit visit);

  /// The same, but those that were sent are out of it, too; returns how many that are, with those that have expired.
  template <typename Visit>
  std::uint64_t forget_sent(Visit visit);

  /// Where none is on its way: those that were meant before `deadline` are out of it; returns how many.
  std::uint64_t forget_unsent(Nanos deadline);

  /// Messages not answered: waiting, sent or not.
  std::uint64_t waiting() const { return size_ - answered_in_ring_ + overtaken_count(); }
  std::uint64_t unanswered() const { return waiting() - unsent_; }

  /// Calls `visit` with the times of every sent message meant before `deadline` that has no answer, once in its life.
  template <typename Visit>
  void expire(Nanos deadline, Visit visit);

  /// Whether no answer came before that of an earlier message.
  bool in_order() const { return answered_in_ring_ == 0 && overtaken_count() == 0; }

  /// Messages that have expired and are still not answered.
  std::uint64_t overdue() const { return overdue_; }

 private:
  static constexpr Nanos answered_mark = -1;
  static constexpr std::uint64_t longest_overtaking = 1024;

  Times& times_of(std::uint64_t sequence) { return ring_.empty() ? only_ : ring_[sequence & (ring_.size() - 1)]; }
  std::size_t capacity() const { return ring_.empty() ? 1 : ring_.size(); }
  std::uint64_t overtaken_count() const { return overtaken_ ? overtaken_->size() : 0; }
  Answered take(const Times& times, std::uint64_t sequence);
  std::optional<Answered> answer_out_of_order(std::uint64_t sequence);
  std::optional<Answered> answer_overtaken(std::uint64_t sequence);
  void drop_front();
  void grow();

  Times only_{};             // in place of the ring while there is one message at most
  std::vector<Times> ring_;  // empty, or a power of two long
  std::uint64_t first_ = 0;  // sequence number at the front
  std::uint64_t size_ = 0;
  std::uint64_t unsent_ = 0;            // the last ones
  std::uint64_t answered_in_ring_ = 0;  // behind one that is not
  std::uint64_t expired_to_ = 0;        // below it, expire() has searched
  std::uint64_t overdue_ = 0;
  std::unique_ptr<std::map<std::uint64_t, Times>> overtaken_;
};

inline void Flight::intend(Nanos intended) {
  if (size_ == capacity()) grow();
  times_of(first_ + size_) = {intended, 0};
  ++size_;
  ++unsent_;
}

inline Nanos Flight::send(Nanos sent_at) {
  Times& times = times_of(next_to_send());
  times.sent = sent_at;
  --unsent_;
  return times.intended;
}

inline Flight::Answered Flight::take(const Times& times, std::uint64_t sequence) {
  const bool expired = sequence < expired_to_;
  if (expired) --overdue_;
  return {times, expired};
}

inline std::optional<Flight::Answered> Flight::answer(std::uint64_t sequence) {
  if (sequence != first_ || size_ == unsent_ || answered_in_ring_ > 0) return answer_out_of_order(sequence);
  const Answered answered = take(times_of(sequence), sequence);
  ++first_;
  --size_;
  return answered;
}

template <typename Visit>
std::uint64_t Flight::take_back(Visit visit) {
  std::uint64_t out = 0;
  for (; first_ < expired_to_ && size_ > unsent_; ++first_, --size_, ++out) --overdue_;
  for (std::uint64_t sequence = first_; sequence < next_to_send(); ++sequence) visit(times_of(sequence));
  unsent_ = size_;
  return out;
}

template <typename Visit>
std::uint64_t Flight::forget_sent(Visit visit) {
  std::uint64_t out = 0;
  for (; size_ > unsent_; ++first_, --size_, ++out) {
    if (first_ < expired_to_)
      --overdue_;
    else
      visit(times_of(first_));
  }
  return out;
}

template <typename Visit>
void Flight::expire(Nanos deadline, Visit visit) {
  const auto give_up = [&](const Times& times) {
    ++overdue_;
    visit(times);
  };
  // Intended times never decrease along the sequence, so the first one that is in time ends the search.
  if (overtaken_) {
    for (auto i = overtaken_->lower_bound(expired_to_); i != overtaken_->end(); ++i) {
      if (i->second.intended >= deadline) return;
      expired_to_ = i->first + 1;
      give_up(i->second);
    }
  }
  expired_to_ = std::max(expired_to_, first_);
  for (; expired_to_ < next_to_send(); ++expired_to_) {
    const Times& times = times_of(expired_to_);
    if (times.intended == answered_mark) continue;
    if (times.intended >= deadline) return;
    give_up(times);
  }
}

}  // namespace netdyno::load
