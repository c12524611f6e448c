#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "lib/cli/url.hpp"

/// Option kinds that servers and the generator share, so that a value means the same everywhere.
namespace netdyno {

struct ByteRange {
  std::uint64_t low;
  std::uint64_t high;
};

/// The last part of argv[0].
std::string program_name(const char* argv0);

/// Prints `<program>: <message>` on stderr and ends with exit 2.
[[noreturn]] void usage_error(const std::string& program, const std::string& message);

/// Exit 0 after `--help`, exit 2 with one clear line on anything that cannot be parsed.
void parse_or_exit(CLI::App& app, const std::string& program, int argc, const char* const* argv);

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& value,
                          const std::string& help);
CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::size_t& value, ByteRange range,
                       const std::string& help);
CLI::Option* add_whole_number(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help);
/// A share from 0 to below 1.
CLI::Option* add_share(CLI::App& app, const std::string& name, double& value, const std::string& help);
/// Bits per second.
CLI::Option* add_bit_rate(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help);
CLI::Option* add_url(CLI::App& app, const std::string& name, Url& value, const std::set<std::string>& transports,
                     const std::string& help);

template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const std::map<std::string, Value>& choices, const std::string& help) {
  std::string names;
  for (const auto& [choice, unused] : choices) names += (names.empty() ? "" : "|") + choice;
  return app
      .add_option_function<std::string>(
          name,
          [&value, choices, name, names](const std::string& text) {
            const auto found = choices.find(text);
            if (found == choices.end()) throw CLI::ValidationError(name, "'" + text + "' is none of " + names);
            value = found->second;
          },
          help)
      ->type_name(names);
}

}  // namespace netdyno
