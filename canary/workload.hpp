#pragma once

#include <chrono>
#include <utility>

#include "lib/net/descriptor.hpp"

/// The work itself: always the same, and nothing of any contestant in it.
namespace netdyno::canary {

/// Both ends of a TCP connection over the loopback, without Nagle's delay. Either gives up on a peer that says nothing
/// for seconds. Dies with a hint when that cannot be had.
std::pair<UniqueFd, UniqueFd> make_connected_pair();

/// The side that asks: 64 bytes there and back, one message at a time. Round trips a second.
double measure_round_trips(int fd, std::chrono::nanoseconds how_long);

/// Both sides: a chain of multiplications, each of which waits for the one before. Millions of them a second.
double count(std::chrono::nanoseconds how_long);

/// The side that asks: the other side counts for so long, at the same time as this one. What `count` says there, and
/// here.
std::pair<double, double> count_together(int fd, std::chrono::nanoseconds how_long);

/// The side that asks: both sides move to this core and stay there, then 64 bytes there and back. Round trips a second:
/// two context switches each, and no wait for a core that sleeps.
double measure_round_trips_on_one_core(int fd, int core, std::chrono::nanoseconds how_long);

/// The answering side: sends each message back, counts or changes its core as a message says, and returns when the
/// other side has ended.
void answer(int fd);

}  // namespace netdyno::canary
