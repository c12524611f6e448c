#include "loadgen/plan/pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lib/cli/units.hpp"

namespace netdyno::load {
namespace {

bool remove_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (auto next = text.find(separator); next != std::string_view::npos; next = text.find(separator)) {
    parts.push_back(text.substr(0, next));
    text.remove_prefix(next + 1);
  }
  parts.push_back(text);
  return parts;
}

/// "20k" or "1k..20k".
std::optional<RateStep> parse_step(std::string_view text) {
  const auto dots = text.find("..");
  const auto from = parse_rate(text.substr(0, dots));
  const auto to = dots == std::string_view::npos ? from : parse_rate(text.substr(dots + 2));
  if (!from || !to) return std::nullopt;
  return RateStep{*from, *to, 0};
}

}  // namespace

std::optional<double> parse_rate(std::string_view text) {
  const double unit = remove_suffix(text, "k") ? 1e3 : remove_suffix(text, "M") ? 1e6 : 1;
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  rate *= unit;
  if (!whole || !(rate >= least_rate && rate <= most_rate)) return std::nullopt;
  return rate;
}

std::optional<Rates> parse_rates(std::string_view text) {
  Rates rates;
  std::size_t without_length = 0;  // the last so many steps, which have that of the next
  const auto parts = split(text, ',');
  for (std::string_view part : parts) {
    Nanos length = 0;
    if (const auto slash = part.rfind('/'); slash != std::string_view::npos && !part.ends_with("/conn")) {
      const auto duration = parse_duration(part.substr(slash + 1));
      if (!duration || duration->count() <= 0) return std::nullopt;
      length = duration->count();
      part = part.substr(0, slash);
    }
    if (remove_suffix(part, "/conn")) rates.per_connection = true;
    const auto step = parse_step(part);
    if (!step) return std::nullopt;
    rates.steps.push_back(*step);
    ++without_length;
    if (length == 0) continue;
    for (; without_length > 0; --without_length) rates.steps[rates.steps.size() - without_length].length = length;
  }
  const bool one_rate = rates.steps.size() == 1 && rates.steps[0].from_hz == rates.steps[0].to_hz;
  if (without_length > 0 && !one_rate) return std::nullopt;
  return rates;
}

Nanos length_of(const std::vector<RateStep>& steps) {
  Nanos sum = 0;
  for (const RateStep& step : steps) sum += std::min(step.length, std::numeric_limits<Nanos>::max() / 2 - sum);
  return sum;
}

double messages_until(const std::vector<RateStep>& steps, Nanos time) {
  double messages = 0;
  for (const RateStep& step : steps) {
    const Nanos part = std::clamp<Nanos>(time, 0, step.length);
    const double reached_hz = step.from_hz + (step.to_hz - step.from_hz) * seconds(part) / seconds(step.length);
    messages += (step.from_hz + reached_hz) / 2 * seconds(part);
    time -= part;
  }
  return messages;
}

double mean_hz(const std::vector<RateStep>& steps) {
  const Nanos length = length_of(steps);
  return messages_until(steps, length) / seconds(length);
}

double fastest_hz(const std::vector<RateStep>& steps) {
  double most = 0;
  for (const RateStep& step : steps) most = std::max({most, step.from_hz, step.to_hz});
  return most;
}

std::string text_of(const RateStep& step) {
  if (step.from_hz == step.to_hz) return fmt::format("{:.10g}/s", step.from_hz);
  return fmt::format("{:.10g} to {:.10g}/s", step.from_hz, step.to_hz);
}

Pace::Pace(std::vector<RateStep> steps, Nanos lead) {
  const double first = steps.front().from_hz;
  steps.insert(steps.begin(), {first, first, lead});
  long double begins_s = 0;
  long double messages = 0;
  for (const RateStep& step : steps) {
    parts_.push_back({step, begins_s, messages});
    begins_s += static_cast<long double>(step.length) / one_second;
    messages += static_cast<long double>(step.messages());
  }
  const double last = steps.back().to_hz;
  parts_.push_back({{last, last, one_second}, begins_s, messages});
}

/// In a step the rate is a + s t, so after t seconds n = a t + s t^2 / 2 messages have become due. Solved for t in the
/// form that loses no digits where s is small.
Nanos Pace::due_after(long double messages) const {
  const auto after = std::ranges::upper_bound(parts_, messages, {}, &Part::messages);
  const Part& part = after == parts_.begin() ? *after : *std::prev(after);
  const long double n = messages - part.messages;
  const long double a = part.step.from_hz;
  const long double s = (part.step.to_hz - part.step.from_hz) / seconds(part.step.length);
  const long double root = std::sqrt(std::max(a * a + 2 * s * n, 0.0L));
  return static_cast<Nanos>(std::llroundl((part.begins_s + 2 * n / (a + root)) * one_second));
}

}  // namespace netdyno::load
