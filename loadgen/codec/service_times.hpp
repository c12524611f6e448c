#pragma once

#include <cstdint>

#include "lib/measure/stamp.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/plan/split_mix.hpp"

namespace netdyno::load {

/// The service time that each request asks for.
class ServiceTimes {
 public:
  explicit ServiceTimes(const LoadPlan& plan)
      : seed_(plan.seed),
        usual_us_(plan.service_us),
        slow_us_(plan.slow_request_us),
        slow_below_(static_cast<std::uint64_t>(plan.slow_requests * 0x1p64)) {}

  std::int32_t find_us(const Stamp& stamp) const { return is_slow(stamp) ? slow_us_ : usual_us_; }

 private:
  /// By the stamp, so that a request that goes out again is as it was, and each server has the same slow ones.
  bool is_slow(const Stamp& stamp) const {
    constexpr int sequence_bits = 40;
    return slow_below_ > 0 &&
           SplitMix64{seed_, std::uint64_t{stamp.client} << sequence_bits | stamp.sequence}() < slow_below_;
  }

  std::uint64_t seed_;
  std::int32_t usual_us_;
  std::int32_t slow_us_;
  std::uint64_t slow_below_;
};

}  // namespace netdyno::load
