#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// Messages a second, and how they change over a part of the window: evenly from one to the other.
struct RateStep {
  double from_hz = 0;
  double to_hz = 0;
  Nanos length = 0;

  double messages() const { return (from_hz + to_hz) / 2 * seconds(length); }
  bool operator==(const RateStep&) const = default;
};

/// A number of messages a second: "5000", "1e3", "20k", "1.5M". Nothing where it is none, or not from `least_rate` to
/// `most_rate`: fewer are none within a day of messages, and more are more than any machine sends and the debt of a
/// schedule has memory for.
constexpr double least_rate = 1e-3;
constexpr double most_rate = 1e7;
std::optional<double> parse_rate(std::string_view text);

/// The rates of `--rate`: one rate, or the steps of the window, one after the other: "1k,5k,20k/10s" (10 s each),
/// "1k..20k/30s" (a ramp), "1k..20k/30s,20k/1m". With /conn all are of each connection: "10..200/conn/30s".
struct Rates {
  std::vector<RateStep> steps;  // one without a length: all of the window
  bool per_connection = false;
};
std::optional<Rates> parse_rates(std::string_view text);

Nanos length_of(const std::vector<RateStep>& steps);
/// Messages that become due in the first so much of their time.
double messages_until(const std::vector<RateStep>& steps, Nanos time);
/// Messages a second over all of them.
double mean_hz(const std::vector<RateStep>& steps);
double fastest_hz(const std::vector<RateStep>& steps);
/// As a person would write it: "1000/s", "1000 to 20000/s".
std::string text_of(const RateStep& step);

/// When messages are due under steps: at the first rate until the steps begin, and at the last one after them.
class Pace {
 public:
  /// `lead`: how long the first rate lasts before the first step.
  Pace(std::vector<RateStep> steps, Nanos lead);

  /// After the start, when so many messages have become due. Computed from their number alone, so that no rounding adds
  /// up.
  Nanos due_after(long double messages) const;

 private:
  struct Part {
    RateStep step;
    long double begins_s;
    long double messages;  // that have become due before it
  };
  std::vector<Part> parts_;
};

}  // namespace netdyno::load
