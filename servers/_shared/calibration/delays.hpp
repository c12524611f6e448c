#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace netdyno::calibration {

/// How long one answer after the other is held back. The same text and the same seed give the same delays, with any
/// standard library.
class Delays {
 public:
  virtual ~Delays() = default;
  virtual std::chrono::nanoseconds next() = 0;
};

/// Reads `--delay`: "constant:1ms", "bimodal:1ms,10ms,0.99" (the share of the first), "exponential:1ms" (the mean),
/// or "file:PATH" (a duration on each line, from the beginning again after the last; what begins with # is skipped).
/// Throws std::invalid_argument that says what is wrong.
std::unique_ptr<Delays> make_delays(const std::string& text, std::uint64_t seed);

}  // namespace netdyno::calibration
