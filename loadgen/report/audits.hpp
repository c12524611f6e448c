#pragma once

#include <string>
#include <vector>

#include "loadgen/plan/plan.hpp"
#include "loadgen/run.hpp"

namespace netdyno::load {

/// One check on the figures of a run. `passed` false means that the run must not be believed; `detail` says with which
/// figures.
struct Audit {
  std::string name;
  bool passed;
  std::string detail;
};

/// The share of a core that the busiest thread used, without spinning for the next message.
double busiest_thread(const LoadPlan& plan, const Measurement& measurement);

/// Whether the run may be believed as it stands. A closed loop goes as fast as the slower of server and generator:
/// where that is the generator, what it says is true, and "at least".
bool at_its_limit(const LoadPlan& plan, const Audit& audit);
bool believed(const LoadPlan& plan, const std::vector<Audit>& audits);
/// Whether an audit that passed says something that a person should know all the same.
bool is_note(const Audit& audit);

/// The statuses of http replies with their counts, such as "200: 30, 302: 10"; empty without any.
std::string list_statuses(const Figures& figures);

/// All checks that can be made from the generator's own figures. A pure function.
std::vector<Audit> audit(const LoadPlan& plan, const Measurement& measurement);

}  // namespace netdyno::load
