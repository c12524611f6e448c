#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lib/measure/histogram.hpp"

namespace netdyno {

/// A histogram with the figures read most often (protocol/load-result.md).
nlohmann::ordered_json distribution(const Histogram& histogram);

}  // namespace netdyno
