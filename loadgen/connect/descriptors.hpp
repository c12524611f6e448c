#pragma once

#include <cstdint>

#include "loadgen/plan/plan.hpp"

namespace netdyno::load {

/// Raises the soft limit of open files to the hard one if the plan needs it. Ends the program with exit 2, and the way
/// out, when that is not enough.
void ensure_descriptors(const LoadPlan& plan);

}  // namespace netdyno::load
