#include "lib/measure/distribution.hpp"

#include <nlohmann/json.hpp>

namespace netdyno {

nlohmann::ordered_json distribution(const Histogram& histogram) {
  return {{"count", histogram.count()}, {"mean", histogram.mean()},       {"p50", histogram.at(50)},
          {"p90", histogram.at(90)},    {"p99", histogram.at(99)},        {"p999", histogram.at(99.9)},
          {"max", histogram.max()},     {"histogram", histogram.encode()}};
}

}  // namespace netdyno
