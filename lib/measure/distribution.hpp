#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>

#include "lib/measure/histogram.hpp"

namespace netdyno {

/// A percentile of a histogram, its name for a reader, and its key in JSON and CSV.
struct Percentile {
  double percent;
  const char* name;
  const char* key;
};

/// The percentiles that every output has (PERCENTILES in python/netdyno/model/load_result.py), in rising order.
inline constexpr std::array percentiles{Percentile{50, "p50", "p50"}, Percentile{90, "p90", "p90"},
                                        Percentile{99, "p99", "p99"}, Percentile{99.9, "p99.9", "p999"},
                                        Percentile{100, "max", "max"}};

/// A histogram with the figures read most often (protocol/load-result.md).
nlohmann::ordered_json distribution(const Histogram& histogram);

}  // namespace netdyno
