#pragma once

#include <string>
#include <vector>

#include "loadgen/plan/plan.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/run.hpp"

/// The result in the forms of other programs; docs/load.md has their schemas.
namespace netdyno::load {

/// A row for the window, one for each of its steps, and one for each interval of the time series.
std::string to_csv(const LoadPlan& plan, const Measurement& measurement);

/// Prometheus' text format, version 0.0.4, as node_exporter's textfile collector takes it.
std::string to_prometheus(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits);

/// The percentile distribution of the response time in microseconds, as HdrHistogram prints it and its plotter reads
/// it.
std::string to_percentiles(const Measurement& measurement);

}  // namespace netdyno::load
