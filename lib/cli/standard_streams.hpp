#pragma once

namespace netdyno {

/// Makes a result that cannot be written to stdout an error: at exit the program says so and ends with status 1,
/// quietly and as by SIGPIPE where its reader has ended. Opens what is closed of stdin, stdout and stderr, unusably, so
/// that no socket gets their numbers. Call it before anything is opened; a CommandLine does.
void guard_standard_streams();

}  // namespace netdyno
