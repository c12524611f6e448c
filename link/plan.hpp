#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace netdyno::link {

/// The treatment of frames in each direction of a link.
struct Terms {
  std::chrono::nanoseconds delay{0};
  double loss = 0;                      // share of the frames, each by itself
  std::uint64_t rate_hz = 0;            // bits per second; 0: as fast as they come
  std::size_t queue_bytes = 1'514'000;  // that wait for the rate: 1000 full frames, an Ethernet interface's queue
  std::size_t limit = 16384;            // frames on the link at a time, waiting or under way
  std::uint64_t seed = 1;               // of the losses
};

/// The options of the command line.
struct LinkPlan {
  std::array<std::string, 2> namespaces;  // files such as /proc/PID/ns/net or /run/netns/NAME
  std::string interface = "lan";          // its name in both
  Terms terms;
};

/// Ends the program on `--help` (exit 0) and on what cannot be meant (exit 2, one clear line on stderr).
LinkPlan parse_plan(int argc, const char* const* argv);

}  // namespace netdyno::link
