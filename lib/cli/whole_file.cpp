#include "lib/cli/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the kernel follows (path_resolution(7))

/// The folder that a path is in, behind all links; empty where there is none.
fs::path folder_of(const fs::path& path) {
  std::error_code error;
  return fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path{"."}, error);
}

/// The number of the descriptor of this process that a path names: /dev/fd/63 is a link into /proc/self/fd.
std::optional<int> descriptor_of(const fs::path& path) {
  if (folder_of(path) != fmt::format("/proc/{}/fd", getpid())) return std::nullopt;
  const std::string name = path.filename();
  int number = 0;
  const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (wrong != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

/// Returns the path behind the links. Those of descriptors are not followed: what they say need not be a path
/// (proc(5)), and an open file has a place where its next byte goes.
fs::path follow_links(fs::path path) {
  std::error_code error;
  const auto is_link = [&] { return fs::is_symlink(path, error) && !folder_of(path).string().starts_with("/proc/"); };
  for (int links = 0; links < most_links && is_link(); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  return path;
}

/// False, with errno. Waits where a descriptor that was handed to this program does not (O_NONBLOCK).
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    pollfd room{fd, POLLOUT, 0};
    if (written < 0 && errno == EAGAIN)
      poll(&room, 1, -1);
    else if (written < 0 && errno != EINTR)
      return false;
    text.remove_prefix(static_cast<std::size_t>(written > 0 ? written : 0));
  }
  return true;
}

/// Writes and closes; 0 or an errno.
int write_and_close(int fd, std::string_view text) {
  if (fd < 0) return errno;
  const int error = write_all(fd, text) ? 0 : errno;
  return close(fd) != 0 && error == 0 ? errno : error;
}

constexpr int peer_ms = 3000;  // that a pipe waits for the program at its other end

/// Whether a pipe neither gets a byte nor an end within peer_ms. It has no writer, or one that has not written yet.
bool is_silent_pipe(int fd) {
  struct stat found {};
  pollfd more{fd, POLLIN, 0};
  return fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode) && poll(&more, 1, peer_ms) == 0;
}

/// Opens a device or a pipe to write to it. ENXIO: no program reads the pipe within peer_ms (fifo(7)).
int open_special(const std::string& name) {
  constexpr int again_ms = 10;
  for (int waited_ms = 0;; waited_ms += again_ms) {
    const int fd = open(name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 || errno != ENXIO || waited_ms >= peer_ms) return fd;
    poll(nullptr, 0, again_ms);
  }
}

int replace(const std::string& name, std::string_view text) {
  const std::string unfinished = fmt::format("{}.{}.tmp", name, getpid());
  constexpr mode_t mode = 0666;  // less the umask
  int error = write_and_close(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), text);
  if (error == 0 && std::rename(unfinished.c_str(), name.c_str()) != 0) error = errno;
  if (error != 0) std::remove(unfinished.c_str());
  return error;
}

}  // namespace

int read_whole(const std::string& name, std::string& text) {
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);  // a pipe may have no writer
  if (fd < 0) return errno;
  std::array<char, 64 << 10> bytes;
  const bool silent = is_silent_pipe(fd);
  int error = 0;
  for (ssize_t count = 1; count != 0 && error == 0;) {
    count = read(fd, bytes.data(), bytes.size());
    pollfd more{fd, POLLIN, 0};
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
    if (count == 0 && silent && text.empty()) error = EPIPE;
    if (count < 0 && errno == EAGAIN)
      poll(&more, 1, -1);
    else if (count < 0 && errno != EINTR)
      error = errno;
    if (text.size() > longest_file) error = EFBIG;
  }
  close(fd);
  return error;
}

int try_write_whole(const std::string& name, const std::string& text) {
  if (name == "-") return write_all(STDOUT_FILENO, text) ? 0 : errno;
  const fs::path target = follow_links(name);
  struct stat found {};
  if (const auto number = descriptor_of(target)) return write_and_close(fcntl(*number, F_DUPFD_CLOEXEC, 0), text);
  if (lstat(target.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return replace(target, text);
  return write_and_close(open_special(target), text);
}

bool is_unread(const std::string& name, int error) { return name == "-" && error == EPIPE; }

std::string describe_unwritten(const std::string& name, int error) {
  const char* const why = error == ENXIO ? "it is a pipe that no program reads" : std::strerror(error);
  return fmt::format("cannot write {}: {}", name == "-" ? "standard output" : name, why);
}

void write_whole(const std::string& name, const std::string& text) {
  const int error = try_write_whole(name, text);
  if (is_unread(name, error)) _exit(128 + SIGPIPE);
  if (error != 0) die(describe_unwritten(name, error));
}

}  // namespace netdyno
