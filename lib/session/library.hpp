#pragma once

#include <string>

namespace netdyno {

/// Loads a function of a library of this build, `FOLDER/NAME.so`, which is not linked: it would take memory of each
/// server that has no use for it. Ends the program where it cannot be had; `option` is what asked for it, `how` says
/// how to get it.
void* load_function(const std::string& library, const char* function, const std::string& option,
                    const std::string& how);

}  // namespace netdyno
