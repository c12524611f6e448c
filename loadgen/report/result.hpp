#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "loadgen/plan/plan.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/run.hpp"

namespace netdyno::load {

/// The result as protocol/load-result.md describes it; the order of the keys never changes.
nlohmann::ordered_json to_json(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits);
/// Messages of the clients that wrote all of theirs and met no error (--messages).
double written_per_second(const LoadPlan& plan, const Measurement& measurement);
/// Its text, on one line.
std::string to_json_line(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits);

/// An HdrHistogram log (version 1.3) with one interval, the window, for each of response, service and the two lags.
std::string to_hdr_log(const LoadPlan& plan, const Measurement& measurement);

}  // namespace netdyno::load
