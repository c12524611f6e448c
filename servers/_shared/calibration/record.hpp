#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/measure/histogram.hpp"
#include "lib/measure/witness.hpp"
#include "servers/_shared/calibration/programme.hpp"

namespace netdyno::calibration {

/// Keeps what was programmed and what was carried out, to compare a measurement with. One thread.
class Record {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Record(const Programme& programme)
      : arrivals_kept_(programme.record_arrivals), warm_up_(programme.warm_up) {}

  /// A request that will be answered was read.
  void note_arrival(Clock::time_point moment);
  /// The request that comes next was read so long after the kernel had it. Of those after the warm-up.
  void note_read_lag(std::chrono::nanoseconds lag);
  /// Counts the fate of the answer of that number, from 1. Times are of answers after the warm-up that a verifying
  /// client can time: neither lost nor corrupted.
  void note_answer(std::uint64_t number, AnswerFate fate, std::chrono::nanoseconds programmed,
                   std::chrono::nanoseconds actual);
  /// An answer had to wait for an earlier one of its connection.
  void count_held_for_order() { ++held_for_order_; }
  void note_stall(const Stall& stall, Clock::time_point from, Clock::time_point to);
  /// Takes what the machine did meanwhile.
  void take_pauses(std::vector<load::Witness::Pause> pauses) { pauses_ = std::move(pauses); }

  /// As one JSON object (README.md).
  std::string json() const;

 private:
  struct StallDone {
    Stall stall;
    Clock::time_point from;
    Clock::time_point to;
  };

  std::uint64_t arrivals_kept_;
  std::uint64_t warm_up_;
  std::vector<Clock::time_point> arrivals_;
  Clock::time_point first_{};
  Clock::time_point last_{};
  std::uint64_t arrived_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t duplicated_ = 0;
  std::uint64_t corrupted_ = 0;
  std::uint64_t held_for_order_ = 0;
  Histogram programmed_;
  Histogram actual_;
  Histogram read_lag_;
  std::vector<StallDone> stalls_;
  std::vector<load::Witness::Pause> pauses_;
};

}  // namespace netdyno::calibration
