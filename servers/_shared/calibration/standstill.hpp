#pragma once

#include "servers/_shared/calibration/programme.hpp"
#include "servers/_shared/calibration/record.hpp"

namespace netdyno::calibration {

/// Carries out the stalls of the whole server that are due: sleeps, as a server does that was stopped. Only the end of
/// the program is watched for (`signals` is readable then), and a stall that it cuts short is recorded as it was.
void stand_still(const Programme& programme, Record::Clock::time_point first_request, int signals, Record& record);

}  // namespace netdyno::calibration
