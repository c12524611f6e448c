#pragma once

#include <string>

namespace netdyno {

/// Writes a file so that a reader sees the old one or the whole new one, behind symbolic links too. What cannot be
/// replaced so (a device, a pipe, a descriptor of this process such as /dev/stdout) is opened and written, and stays
/// what it is. Ends the program where it cannot be written.
void write_whole(const std::string& name, const std::string& text);

}  // namespace netdyno
