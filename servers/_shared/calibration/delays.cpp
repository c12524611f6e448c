#include "servers/_shared/calibration/delays.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/cli/units.hpp"
#include "lib/cli/whole_file.hpp"

namespace netdyno::calibration {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds longest = std::chrono::hours{1};

/// Uniform in [0, 1) with 53 bits. The engine's output is prescribed by the standard, that of its distributions is not.
class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : engine_(seed) {}
  double next() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

class Constant final : public Delays {
 public:
  explicit Constant(nanoseconds delay) : delay_(delay) {}
  nanoseconds next() override { return delay_; }

 private:
  nanoseconds delay_;
};

class Bimodal final : public Delays {
 public:
  Bimodal(nanoseconds first, nanoseconds second, double share_of_first, std::uint64_t seed)
      : first_(first), second_(second), share_(share_of_first), uniform_(seed) {}
  nanoseconds next() override { return uniform_.next() < share_ ? first_ : second_; }

 private:
  nanoseconds first_;
  nanoseconds second_;
  double share_;
  Uniform uniform_;
};

class Exponential final : public Delays {
 public:
  Exponential(nanoseconds mean, std::uint64_t seed) : mean_(mean), uniform_(seed) {}
  /// By inversion: -mean ln(1 - u). With 53 bits it is at most 37 times the mean.
  nanoseconds next() override {
    return nanoseconds{std::llround(-std::log1p(-uniform_.next()) * static_cast<double>(mean_.count()))};
  }

 private:
  nanoseconds mean_;
  Uniform uniform_;
};

class Listed final : public Delays {
 public:
  explicit Listed(std::vector<nanoseconds> delays) : delays_(std::move(delays)) {}
  nanoseconds next() override { return delays_[next_++ % delays_.size()]; }

 private:
  std::vector<nanoseconds> delays_;
  std::size_t next_ = 0;
};

nanoseconds duration(std::string_view text) {
  const auto parsed = parse_duration(text);
  if (!parsed || *parsed > longest)
    throw std::invalid_argument("'" + std::string{text} + "' is no duration of at most an hour; want e.g. 250us, 5ms");
  return *parsed;
}

double share(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(value >= 0 && value <= 1))
    throw std::invalid_argument("'" + std::string{text} + "' is no share; want a number from 0 to 1");
  return value;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (auto comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<nanoseconds> read_file(const std::string& path) {
  std::string text;
  if (const int error = read_whole(path, text); error != 0)
    throw std::invalid_argument("'" + path + "' cannot be read: " + std::strerror(error));
  std::istringstream file{std::move(text)};
  std::vector<nanoseconds> delays;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') delays.push_back(duration(line));
  if (delays.empty()) throw std::invalid_argument("'" + path + "' holds no duration");
  return delays;
}

}  // namespace

std::unique_ptr<Delays> make_delays(const std::string& text, std::uint64_t seed) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "constant") return std::make_unique<Constant>(duration(rest));
  if (kind == "exponential") return std::make_unique<Exponential>(duration(rest), seed);
  if (kind == "file") return std::make_unique<Listed>(read_file(rest));
  if (kind == "bimodal") {
    const auto parts = split(rest);
    if (parts.size() != 3) throw std::invalid_argument("'" + rest + "' is no bimodal delay; want e.g. 1ms,10ms,0.99");
    return std::make_unique<Bimodal>(duration(parts[0]), duration(parts[1]), share(parts[2]), seed);
  }
  throw std::invalid_argument("'" + text +
                              "' is none of constant:DUR, bimodal:DUR,DUR,SHARE, exponential:DUR, file:PATH");
}

}  // namespace netdyno::calibration
