#include "programme.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "common/option_values.hpp"
#include "common/units.hpp"
#include "delays.hpp"

namespace netdyno::calibration {
namespace {

/// "at=2s,for=1s[,connection=3]"; nothing where it cannot be meant.
std::optional<Stall> parse_stall(std::string_view text) {
  std::optional<std::chrono::nanoseconds> at, duration;
  std::optional<std::uint64_t> connection;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto key = item.substr(0, equals);
    const auto value = item.substr(equals + 1);
    if (key == "at") {
      if (!(at = parse_duration(value))) return std::nullopt;
    } else if (key == "for") {
      if (!(duration = parse_duration(value))) return std::nullopt;
    } else if (key == "connection") {
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc{} || end != value.data() + value.size() || number == 0) return std::nullopt;
      connection = number;
    } else {
      return std::nullopt;
    }
  }
  if (!at || !duration || duration->count() == 0) return std::nullopt;
  return Stall{*at, *duration, connection};
}

void add_stall(CLI::App& app, std::vector<Stall>& stalls) {
  app.add_option_function<std::vector<std::string>>(
         "--stall",
         [&stalls](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             const auto parsed = parse_stall(text);
             if (!parsed)
               throw CLI::ValidationError("--stall", "'" + text + "' is no stall; want e.g. at=2s,for=1s,connection=3");
             stalls.push_back(*parsed);
           }
         },
         "do nothing for a while, counted from the first request: all of the server, or one connection")
      ->type_name("at=DUR,for=DUR[,connection=N]")
      ->allow_extra_args(false);
}

}  // namespace

Fate Faults::of(std::uint64_t answer) const {
  const auto chosen = [answer](std::uint64_t every) { return every > 0 && answer % every == 0; };
  if (chosen(lose)) return Fate::lost;
  if (chosen(corrupt)) return Fate::corrupted;
  return chosen(duplicate) ? Fate::duplicated : Fate::sent;
}

Settings parse_settings(int argc, const char* const* argv) {
  Settings settings;
  Programme& programme = settings.programme;
  settings.server = parse_server_options(argc, argv, ThreadModel::one, "tcp", [&programme](CLI::App& app) {
    app.add_option("--delay", programme.delay,
                   "how long each answer is held back: constant, bimodal, exponential, file")
        ->type_name("KIND:VALUES");
    add_whole_number(app, "--seed", programme.seed, "seed of random delays (default 1)");
    add_stall(app, programme.stalls);
    add_whole_number(app, "--lose", programme.faults.lose, "never send every N-th answer");
    add_whole_number(app, "--duplicate", programme.faults.duplicate, "send every N-th answer twice");
    add_whole_number(app, "--corrupt", programme.faults.corrupt, "change a byte of every N-th answer");
    add_whole_number(app, "--record-arrivals", programme.record_arrivals, "tell when the first N requests came");
    add_whole_number(app, "--warm-up", programme.warm_up, "leave the delays of the first N answers out of the totals");
    add_duration(app, "--look-out", programme.look_out,
                 "how long before an answer is due it stops sleeping (default 100us)");
    add_bytes(app, "--receive-buffer", programme.receive_buffer, {1, 1ULL << 30},
              "SO_RCVBUF of its connections (default: the system's)");
  });
  const std::string program = program_name(argv[0]);
  if (settings.server.workload == Workload::chat)
    usage_error(program, "--workload: a broadcast has no one answer to delay; want echo, lines, rpc or http");
  try {
    make_delays(programme.delay, programme.seed);
  } catch (const std::invalid_argument& error) {
    usage_error(program, std::string{"--delay: "} + error.what());
  }
  return settings;
}

}  // namespace netdyno::calibration
