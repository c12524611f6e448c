#pragma once

#include <string>

namespace netdyno {

/// Ends the program with `message` and exit 1: set-up cannot go on. Put the way out into the message.
[[noreturn]] void die(const std::string& message);

/// The same; says what `error`, an errno, means.
[[noreturn]] void die_errno(const std::string& what, int error);

}  // namespace netdyno
