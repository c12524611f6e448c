#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/plan/split_mix.hpp"

/// Inputs by chance for whatever reads bytes of others. A subject is a file with a `Target`; main.cpp is the loop.
namespace netdyno::fuzz {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next() { return random_(); }
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

 private:
  load::SplitMix64 random_;
};

/// One input, and how it is cut. The first byte chooses options of the subject; the rest is what the subject reads.
struct Input {
  std::string bytes;
  std::uint64_t cuts = 0;

  unsigned choice() const { return bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front()); }
  std::string_view rest() const { return bytes.empty() ? std::string_view{} : std::string_view{bytes}.substr(1); }

  /// Calls `take(piece)` for one piece after the other, until it returns false. The same cuts each time.
  template <typename Take>
  void each_piece(Take&& take) const {
    Chance chance{cuts};
    const std::size_t longest = std::size_t{1} << chance.below(12);
    for (auto left = rest(); !left.empty();) {
      const auto piece = left.substr(0, 1 + chance.below(longest));
      left.remove_prefix(piece.size());
      if (!take(piece)) return;
    }
  }
};

/// A subject: registers itself under its name. `run` calls `must` for each property.
struct Target {
  Target(std::string_view name, std::vector<std::string> (*seeds)(), void (*run)(const Input&));

  std::string_view name;
  std::vector<std::string> (*seeds)();
  void (*run)(const Input&);
};

const std::vector<const Target*>& targets();

/// Ends the program, which then shows the input, unless `holds`.
void must(bool holds, std::string_view what);

/// The bytes of the heap in use, and the most that were since `forget_peak`.
std::size_t heap_in_use();
std::size_t heap_peak();
void forget_peak();

/// Whether code that no input has reached before was reached since the last call; always false where the compiler does
/// not tell (CMakeLists.txt).
bool reached_new_code();

/// Changes an input: bits, numbers, pieces cut out, doubled, moved, and pieces of another.
void mutate(std::string& bytes, const std::vector<std::string>& corpus, Chance& chance);

/// The streams of protocol/golden.json of a workload, each behind a byte of 0; of all workloads where it is empty.
std::vector<std::string> golden_streams(std::string_view workload);

}  // namespace netdyno::fuzz
