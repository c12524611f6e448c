#pragma once

#include <cstdint>
#include <string>

#include "lib/net/descriptor.hpp"

namespace netdyno::link {

/// A TAP device (Documentation/networking/tuntap.rst) in some network namespace: what is sent through it there is read
/// from `fd` here, a frame each time, and what is written is received there. It is gone when `fd` is closed.
class Tap {
 public:
  /// Creates it in the namespace of this thread. Dies with a hint where that fails.
  explicit Tap(const std::string& interface);

  int fd() const { return fd_.get(); }
  /// Frames that the kernel has dropped because those before them were not read yet.
  std::uint64_t unread() const;

 private:
  std::string interface_;
  UniqueFd fd_;
  UniqueFd counters_;  // of the namespace, from wherever this process is
};

/// Opens the file of a network namespace, and moves this thread into one (setns(2)). Both die with a hint.
UniqueFd open_namespace(const std::string& file);
void enter(const UniqueFd& namespace_fd, const std::string& file);

}  // namespace netdyno::link
