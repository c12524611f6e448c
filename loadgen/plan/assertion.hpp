#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace netdyno::load {

struct Figures;

/// A condition that a run has to meet: `p99<5ms`, `rate>=1000`, `errors=0`.
struct Assertion {
  enum class Relation { less, at_most, more, at_least, equal };
  std::string text;  // as it was written
  std::string metric;
  Relation relation;
  double bound;  // times in nanoseconds
};

/// Nothing when the text is no assertion.
std::optional<Assertion> parse_assertion(std::string_view text);

/// The figure that it is about, in its unit: nanoseconds of response time, right answers a second, or how many messages
/// and connections went wrong. NaN, of which nothing holds, where there is no time to take it from.
double value_of(const Assertion& assertion, const Figures& figures, double window_s);
bool holds(const Assertion& assertion, double value);

}  // namespace netdyno::load
