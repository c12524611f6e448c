#pragma once

#include <cstddef>
#include <vector>

#include "lib/measure/clock.hpp"
#include "lib/net/descriptor.hpp"

namespace netdyno::load {

/// Members of a chat room that take little of what is sent to them: each reads at most 1 KiB ten times a second, and
/// its socket holds little more. They send nothing, and what they read is neither verified nor counted: the others are
/// what is measured. Owning thread only.
class SlowReaders {
 public:
  static constexpr std::size_t sip = 1 << 10;
  static constexpr Nanos between_sips = 100'000'000;

  /// A connection that stands; from now on it is read slowly.
  void add(UniqueFd fd, Nanos now);
  /// When the next read is due; `never` without readers.
  Nanos next() const { return readers_.empty() ? never : next_; }
  /// Reads what is due. Does not detect which readers the server closes: the end of a stream comes behind all that the
  /// kernel holds of it.
  void read(Nanos now);

 private:
  std::vector<UniqueFd> readers_;
  Nanos next_ = never;
};

}  // namespace netdyno::load
