#include "servers/_shared/calibration/programme.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "lib/cli/option_values.hpp"
#include "lib/cli/units.hpp"
#include "lib/measure/process.hpp"
#include "servers/_shared/calibration/delays.hpp"

namespace netdyno::calibration {
namespace {

/// "at=2s,for=1s[,connection=3]"; nothing where it cannot be meant.
std::optional<Stall> parse_stall(std::string_view text) {
  std::optional<std::chrono::nanoseconds> begin, duration;
  std::optional<std::uint64_t> connection;
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto key = item.substr(0, equals);
    const auto value = item.substr(equals + 1);
    if (key == "at") {
      if (!(begin = parse_duration(value))) return std::nullopt;
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
  if (!begin || !duration || duration->count() == 0) return std::nullopt;
  return Stall{*begin, *duration, connection};
}

/// "generator=1"; nothing where it cannot be meant.
std::optional<load::WatchedCore> parse_core(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  const auto number = text.substr(equals + 1);
  int core = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), core);
  if (error != std::errc{} || end != number.data() + number.size() || core < 0 || core >= load::core_numbers)
    return std::nullopt;
  return load::WatchedCore{std::string{text.substr(0, equals)}, core};
}

/// An option that may be repeated, each text of which `parse` understands or not; `expected` says what it should be.
template <typename T>
void add_several(CommandLine& line, const std::string& name, std::vector<T>& values,
                 std::optional<T> (*parse)(std::string_view), const std::string& expected, const std::string& type,
                 const std::string& help) {
  const auto read = [=, &values](const std::string& text) {
    const auto parsed = parse(text);
    if (!parsed) refuse_value(name, "'" + text + "' is no " + expected);
    values.push_back(*parsed);
  };
  line.add_read_each(name, read, help).type_name(type);
}

void add_own_options(CommandLine& line, Programme& programme, bool connections) {
  line.add_text("--delay", programme.delay, "how long each answer is held back: constant, bimodal, exponential, file")
      .type_name("KIND:VALUES");
  add_whole_number(line, "--seed", programme.seed, "seed of random delays (default 1)");
  add_several(line, "--stall", programme.stalls, parse_stall, "stall; want e.g. at=2s,for=1s,connection=3",
              connections ? "at=DUR,for=DUR[,connection=N]" : "at=DUR,for=DUR",
              "do nothing for a while, counted from the first request");
  add_whole_number(line, "--lose", programme.faults.lose, "never send every N-th answer", 1);
  add_whole_number(line, "--duplicate", programme.faults.duplicate, "send every N-th answer twice", 1);
  add_whole_number(line, "--corrupt", programme.faults.corrupt, "change a byte of every N-th answer", 1);
  add_whole_number(line, "--record-arrivals", programme.record_arrivals, "tell when the first N requests came");
  add_whole_number(line, "--warm-up", programme.warm_up, "leave the delays of the first N answers out of the totals");
  add_duration(line, "--look-out", programme.look_out,
               "how long before an answer is due it stops sleeping (default 100us)");
  add_several(line, "--witness", programme.to_witness, parse_core, "core with a name; want e.g. generator=1",
              "NAME=CORE", "tell when the machine let nothing run on a core");
  if (!connections) return;
  add_bytes(line, "--receive-buffer", programme.receive_buffer, {1, 1ULL << 30},
            "SO_RCVBUF of its connections (default: the system's)");
  line.add_flag("--arrival-times", programme.arrival_times, "tell how long requests waited in the kernel to be read");
}

/// Names what is wrong with a programme, or nothing.
std::string why_not(const Settings& settings, bool connections) {
  if (settings.server.workload == Workload::chat)
    return "--workload: a broadcast has no one answer to delay; want another";
  if (settings.server.tls) return "--tls: an instrument's answers are not encrypted";
  const auto& stalls = settings.programme.stalls;
  if (!connections && std::ranges::any_of(stalls, [](const Stall& stall) { return stall.connection.has_value(); }))
    return "--stall: there are no connections over this transport; leave connection= out";
  try {
    make_delays(settings.programme.delay, settings.programme.seed);
  } catch (const std::invalid_argument& error) {
    return std::string{"--delay: "} + error.what();
  }
  return {};
}

}  // namespace

AnswerFate InjectedFaults::fate_of(std::uint64_t answer) const {
  const auto chosen = [answer](std::uint64_t every) { return every > 0 && answer % every == 0; };
  if (chosen(lose)) return AnswerFate::lost;
  if (chosen(corrupt)) return AnswerFate::corrupted;
  return chosen(duplicate) ? AnswerFate::duplicated : AnswerFate::sent;
}

void corrupt(std::string& answer) {
  const std::size_t line_end = answer.size() > 1 && answer.ends_with('\n') ? 1 : 0;
  char& byte = answer[answer.size() - 1 - line_end];
  byte = static_cast<char>(byte ^ 0x80);
}

Settings parse_settings(int argc, const char* const* argv, const std::string& transport) {
  const bool connections = transport == "tcp";
  Settings settings;
  settings.server = parse_server_options(argc, argv, ThreadModel::one, transport, [&](CommandLine& line) {
    add_own_options(line, settings.programme, connections);
  });
  if (const auto why = why_not(settings, connections); !why.empty()) usage_error(program_name(argv[0]), why);
  std::ranges::sort(settings.programme.stalls, {}, &Stall::begin);
  return settings;
}

}  // namespace netdyno::calibration
