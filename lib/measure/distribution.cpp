#include "lib/measure/distribution.hpp"

#include <nlohmann/json.hpp>

namespace netdyno {

nlohmann::ordered_json distribution(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"mean", histogram.mean()},
          {"p50", histogram.find_percentile(50)},
          {"p90", histogram.find_percentile(90)},
          {"p99", histogram.find_percentile(99)},
          {"p999", histogram.find_percentile(99.9)},
          {"max", histogram.max()},
          {"histogram", histogram.encode()}};
}

}  // namespace netdyno
