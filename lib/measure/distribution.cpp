#include "lib/measure/distribution.hpp"

#include <nlohmann/json.hpp>

namespace netdyno {

nlohmann::ordered_json distribution(const Histogram& histogram) {
  nlohmann::ordered_json json{{"count", histogram.count()}, {"mean", histogram.mean()}};
  for (const Percentile& p : percentiles) json[p.key] = histogram.find_percentile(p.percent);
  json["histogram"] = histogram.encode();
  return json;
}

}  // namespace netdyno
