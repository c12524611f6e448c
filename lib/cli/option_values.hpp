#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "lib/cli/command_line.hpp"
#include "lib/cli/url.hpp"

/// Option kinds that servers and the generator share, so that a value means the same everywhere.
namespace netdyno {

struct ByteRange {
  std::uint64_t low;
  std::uint64_t high;
};

Option add_duration(CommandLine& line, const std::string& name, std::chrono::nanoseconds& value,
                    const std::string& help);
Option add_duration(CommandLine& line, const std::string& name, std::int64_t& nanoseconds, const std::string& help);
Option add_bytes(CommandLine& line, const std::string& name, std::size_t& value, ByteRange range,
                 const std::string& help);
/// `least`: 1 where 0 in the variable means that the option was not given, so that 0 cannot be given.
Option add_whole_number(CommandLine& line, const std::string& name, std::uint64_t& value, const std::string& help,
                        std::uint64_t least = 0);
/// A share from 0 to below 1.
Option add_share(CommandLine& line, const std::string& name, double& value, const std::string& help);
/// Bits per second.
Option add_bit_rate(CommandLine& line, const std::string& name, std::uint64_t& value, const std::string& help);
Option add_url(CommandLine& line, const std::string& name, Url& value, const std::set<std::string>& transports,
               const std::string& help);

template <typename Value>
Option add_choice(CommandLine& line, const std::string& name, Value& value, const std::map<std::string, Value>& choices,
                  const std::string& help) {
  std::string names;
  for (const auto& [choice, unused] : choices) names += (names.empty() ? "" : "|") + choice;
  const auto read = [&value, choices, name, names](const std::string& text) {
    const auto found = choices.find(text);
    if (found == choices.end()) refuse_value(name, "'" + text + "' is none of " + names);
    value = found->second;
  };
  return line.add_read(name, read, help).type_name(names);
}

}  // namespace netdyno
