#pragma once

#include <cstddef>
#include <string>

namespace netdyno {

/// The most that read_whole takes: a device or a pipe may have no end.
inline constexpr std::size_t longest_file = 256 << 20;

/// Reads a file, also a pipe, into `text`. Returns 0 or an errno: EFBIG where it has more than longest_file, EPIPE
/// where it is a pipe to which no program writes.
int read_whole(const std::string& name, std::string& text);

/// Writes a file, or stdout as "-", so that a reader sees the old one or the whole new one, behind symbolic links too.
/// What cannot be replaced so (a device, a pipe, a descriptor of this process such as /dev/stdout) is opened and
/// written, and stays what it is. Returns 0 or an errno.
int try_write_whole(const std::string& name, const std::string& text);
/// The same. Ends the program where it cannot be written: quietly, as SIGPIPE would, where stdout is not read any more.
void write_whole(const std::string& name, const std::string& text);

/// Whether it was stdout, and the program that read it has ended: no mistake, and no complaint.
bool is_unread(const std::string& name, int error);

/// Reports what try_write_whole could not write, and why.
std::string describe_unwritten(const std::string& name, int error);

}  // namespace netdyno
