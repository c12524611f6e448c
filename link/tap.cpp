#include "link/tap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "lib/cli/die.hpp"

namespace netdyno::link {
namespace {

constexpr const char* device = "/dev/net/tun";

std::string explain_error(int error) {
  if (error == ENOENT || error == ENODEV || error == ENXIO)
    return "; the kernel needs CONFIG_TUN, as root: modprobe tun; a container must be started with that device";
  if (error == EACCES) return "; as root: chmod 666 /dev/net/tun, which gives users devices in their own networks only";
  if (error == EPERM)
    return "; that takes CAP_NET_ADMIN in the network namespace, and a container that allows the device";
  if (error == EBUSY || error == EEXIST) return "; there is a device of that name already";
  return {};
}

[[noreturn]] void die_of(const std::string& what) {
  const int error = errno;
  die(fmt::format("{}: {}{}", what, std::strerror(error), explain_error(error)));
}

ifreq make_request(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

UniqueFd open_device(const std::string& interface) {
  UniqueFd fd{open(device, O_RDWR | O_CLOEXEC | O_NONBLOCK)};
  if (!fd) die_of(fmt::format("cannot open {}", device));
  ifreq request = make_request(interface);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) die_of(fmt::format("cannot make the TAP device {}", interface));
  return fd;
}

}  // namespace

Tap::Tap(const std::string& interface) : interface_(interface), fd_(open_device(interface)) {
  // What this file tells is decided when it is opened: the counters of the namespace that the thread is in now.
  counters_ = UniqueFd{open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC)};
  if (!counters_) die_of("/proc/thread-self/net/dev");
}

/// The column "drop" of what was transmitted, twelfth after the name (/proc/net/dev, proc(5)).
std::uint64_t Tap::unread() const {
  std::array<char, 4096> text;  // of a namespace that has two interfaces
  const ssize_t size = pread(counters_.get(), text.data(), text.size(), 0);
  if (size <= 0) die_of("/proc/thread-self/net/dev");
  std::istringstream lines{std::string{text.data(), static_cast<std::size_t>(size)}};
  for (std::string line; std::getline(lines, line);) {
    const auto name_at = line.find(interface_ + ":");
    if (name_at == std::string::npos) continue;
    std::istringstream columns{line.substr(name_at + interface_.size() + 1)};
    std::uint64_t value = 0;
    for (int column = 1; column <= 12; ++column) columns >> value;
    if (columns) return value;
  }
  die(fmt::format("the device {} is gone", interface_));
}

UniqueFd open_namespace(const std::string& file) {
  UniqueFd fd{open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) die_of(fmt::format("cannot open the network namespace {}", file));
  return fd;
}

void enter(const UniqueFd& namespace_fd, const std::string& file) {
  if (setns(namespace_fd.get(), CLONE_NEWNET) != 0) die_of(fmt::format("cannot enter the network namespace {}", file));
}

}  // namespace netdyno::link
