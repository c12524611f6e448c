#include "lib/cli/option_values.hpp"

#include <charconv>
#include <optional>

#include "lib/cli/units.hpp"

namespace netdyno {
namespace {

/// Says why a text is no value of an option.
[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& why) {
  refuse_value(name, "'" + text + "' " + why);
}

/// An option whose text `parse(text)` turns into its value; `parse` throws what `refuse` does.
template <typename Value, typename Parse>
Option add_parsed(CommandLine& line, const std::string& name, Value& value, const std::string& help,
                  const char* type_name, Parse parse) {
  return line
      .add_read(
          name, [&value, parse](const std::string& text) { value = parse(text); }, help)
      .type_name(type_name);
}

/// The whole text as a number. Not the parser's own conversion: it reads nothing as 0, and -1 as 2^64 - 1.
template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::chrono::nanoseconds read_duration(const std::string& name, const std::string& text) {
  const auto parsed = parse_duration(text);
  if (!parsed) refuse(name, text, "is no duration; want e.g. 250us, 5ms, 1s");
  return *parsed;
}

}  // namespace

Option add_duration(CommandLine& line, const std::string& name, std::chrono::nanoseconds& value,
                    const std::string& help) {
  return add_parsed(line, name, value, help, "DUR",
                    [name](const std::string& text) { return read_duration(name, text); });
}

Option add_duration(CommandLine& line, const std::string& name, std::int64_t& nanoseconds, const std::string& help) {
  return add_parsed(line, name, nanoseconds, help, "DUR",
                    [name](const std::string& text) { return read_duration(name, text).count(); });
}

Option add_bytes(CommandLine& line, const std::string& name, std::size_t& value, ByteRange range,
                 const std::string& help) {
  return add_parsed(line, name, value, help, "BYTES", [name, range](const std::string& text) {
    const auto parsed = parse_bytes(text);
    if (!parsed) refuse(name, text, "is no size; want e.g. 512, 16KiB, 1MiB");
    if (*parsed < range.low || *parsed > range.high) refuse(name, text, "is out of range");
    return static_cast<std::size_t>(*parsed);
  });
}

Option add_whole_number(CommandLine& line, const std::string& name, std::uint64_t& value, const std::string& help,
                        std::uint64_t least) {
  return add_parsed(line, name, value, help, "N", [name, least](const std::string& text) {
    const auto parsed = parse_number<std::uint64_t>(text);
    if (!parsed || *parsed < least)
      refuse(name, text, "is no whole number from " + std::to_string(least) + " to 2^64 - 1");
    return *parsed;
  });
}

Option add_share(CommandLine& line, const std::string& name, double& value, const std::string& help) {
  return add_parsed(line, name, value, help, "SHARE", [name](const std::string& text) {
    const auto parsed = parse_number<double>(text);
    if (!parsed || !(*parsed >= 0 && *parsed < 1)) refuse(name, text, "is no share from 0 to below 1");
    return *parsed;
  });
}

Option add_bit_rate(CommandLine& line, const std::string& name, std::uint64_t& value, const std::string& help) {
  return add_parsed(line, name, value, help, "RATE", [name](const std::string& text) {
    const auto parsed = parse_bit_rate(text);
    if (!parsed) refuse(name, text, "is no rate; want e.g. 10mbit, 1gbit");
    return *parsed;
  });
}

Option add_url(CommandLine& line, const std::string& name, Url& value, const std::set<std::string>& transports,
               const std::string& help) {
  return add_parsed(line, name, value, help, "URL", [name, transports](const std::string& text) {
    const auto parsed = parse_url(text);
    if (!parsed) refuse(name, text, "is no URL; want e.g. tcp://127.0.0.1:7000");
    if (!transports.contains(parsed->transport))
      refuse_value(name, "transport '" + parsed->transport + "' is not supported");
    return *parsed;
  });
}

}  // namespace netdyno
