#include "loadgen/plan/assertion.hpp"

#include <charconv>
#include <limits>

#include "lib/cli/units.hpp"
#include "lib/measure/distribution.hpp"
#include "lib/measure/recorder.hpp"

namespace netdyno::load {
namespace {

std::optional<double> percent_of(std::string_view metric) {
  for (const Percentile& p : percentiles)
    if (metric == p.name || metric == p.key) return p.percent;
  return std::nullopt;
}

bool is_time(std::string_view metric) { return metric == "mean" || percent_of(metric); }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<double> parse_bound(std::string_view text, bool time) {
  if (time) {
    const auto duration = parse_duration(text);
    return duration ? std::optional{static_cast<double>(duration->count())} : std::nullopt;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !(number >= 0)) return std::nullopt;
  return number;
}

std::uint64_t errors_of(const Figures& f) {
  const auto& c = f.connections;
  return f.errors.timeout + f.errors.closed_by_server + f.errors.reset + f.errors.protocol + f.messages.unexpected +
         f.messages.corrupt + c.refused + c.timed_out + c.reset + c.other;
}

}  // namespace

std::optional<Assertion> parse_assertion(std::string_view text) {
  const auto position = text.find_first_of("<>=");
  if (position == std::string_view::npos) return std::nullopt;
  const bool with_equal = text[position] != '=' && text.substr(position + 1).starts_with('=');
  Assertion assertion;
  assertion.text = text;
  assertion.metric = trimmed(text.substr(0, position));
  using Relation = Assertion::Relation;
  assertion.relation = text[position] == '='   ? Relation::equal
                       : text[position] == '<' ? (with_equal ? Relation::at_most : Relation::less)
                                               : (with_equal ? Relation::at_least : Relation::more);
  const bool time = is_time(assertion.metric);
  if (!time && assertion.metric != "rate" && assertion.metric != "errors") return std::nullopt;
  const auto bound = parse_bound(trimmed(text.substr(position + (with_equal ? 2 : 1))), time);
  if (!bound) return std::nullopt;
  assertion.bound = *bound;
  return assertion;
}

double value_of(const Assertion& assertion, const Figures& figures, double window_s) {
  if (assertion.metric == "rate")
    return window_s > 0 ? static_cast<double>(figures.completed_in_window) / window_s
                        : std::numeric_limits<double>::quiet_NaN();
  if (assertion.metric == "errors") return static_cast<double>(errors_of(figures));
  if (figures.response.count() == 0) return std::numeric_limits<double>::quiet_NaN();
  if (assertion.metric == "mean") return figures.response.mean();
  return static_cast<double>(figures.response.find_percentile(percent_of(assertion.metric).value()));
}

bool holds(const Assertion& assertion, double value) {
  switch (assertion.relation) {
    case Assertion::Relation::less:
      return value < assertion.bound;
    case Assertion::Relation::at_most:
      return value <= assertion.bound;
    case Assertion::Relation::more:
      return value > assertion.bound;
    case Assertion::Relation::at_least:
      return value >= assertion.bound;
    case Assertion::Relation::equal:
      return value == assertion.bound;
  }
  return false;
}

}  // namespace netdyno::load
