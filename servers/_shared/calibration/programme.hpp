#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/measure/witness.hpp"
#include "lib/server/options.hpp"

/// The programme of what the server does to its answers, beside giving them.
namespace netdyno::calibration {

/// Nothing is read, sent or accepted for a while: by the whole server, or on one connection.
struct Stall {
  std::chrono::nanoseconds begin;  // after the first request
  std::chrono::nanoseconds duration;
  std::optional<std::uint64_t> connection = {};  // the how-manieth accepted, from 1
};

enum class AnswerFate { sent, lost, duplicated, corrupted };

/// Every N-th answer of the server's life, counted from 1; 0: none. An answer has one fate: what is lost is neither
/// corrupted nor duplicated, and what is corrupted comes once, so that each is counted exactly.
struct InjectedFaults {
  std::uint64_t lose = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t corrupt = 0;

  AnswerFate fate_of(std::uint64_t answer) const;
};

/// Changes the last byte that is not a line's end; with the highest bit, so that text never gets a line's end.
void corrupt(std::string& answer);

struct Programme {
  std::string delay = "constant:0";
  std::uint64_t seed = 1;
  std::vector<Stall> stalls;
  InjectedFaults faults;
  std::uint64_t record_arrivals = 0;  // how many of the first arrivals the totals tell
  std::uint64_t warm_up = 0;          // the first answers, whose delays the totals leave out
  std::chrono::nanoseconds look_out = std::chrono::microseconds{100};
  bool arrival_times = false;                 // ask the kernel when requests arrived
  std::size_t receive_buffer = 0;             // SO_RCVBUF of each connection; 0: as the system has it
  std::vector<load::WatchedCore> to_witness;  // cores
};

struct Settings {
  ServerOptions server;
  Programme programme;
};

/// The contract's options and these of a server over `transport`. Ends the program as parse_server_options does.
Settings parse_settings(int argc, const char* const* argv, const std::string& transport);

}  // namespace netdyno::calibration
