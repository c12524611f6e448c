// Records what it reads, and says how the result is encoded and what it reads from it itself. A line of numbers in
// (nanoseconds, separated by spaces), a line of JSON out; tests/programs/test_histogram_interop.py compares.
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lib/measure/histogram.hpp"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    netdyno::Histogram histogram;
    std::istringstream numbers{line};
    for (std::int64_t value = 0; numbers >> value;) histogram.record(value);
    nlohmann::json percentiles = nlohmann::json::object();
    for (const double percentile : {0.0, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0})
      percentiles[nlohmann::json(percentile).dump()] = histogram.find_percentile(percentile);
    std::cout << nlohmann::json{{"encoded", histogram.encode()},
                                {"count", histogram.count()},
                                {"mean", histogram.mean()},
                                {"max", histogram.max()},
                                {"percentiles", percentiles}}
              << std::endl;
  }
}
