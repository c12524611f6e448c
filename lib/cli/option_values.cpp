#include "lib/cli/option_values.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "lib/cli/units.hpp"

namespace netdyno {

std::string program_name(const char* argv0) {
  const std::string path = argv0;
  return path.substr(path.rfind('/') + 1);
}

namespace {

/// Whatever the caller put into an argument, the message about it stays one line and does nothing to a terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return text;
}

}  // namespace

void usage_error(const std::string& program, const std::string& message) {
  std::fprintf(stderr, "%s: %s (--help lists the options)\n", program.c_str(), printable(message).c_str());
  std::exit(2);
}

void parse_or_exit(CLI::App& app, const std::string& program, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    usage_error(program, error.what());
  }
}

namespace {

/// Says why a text is no value of an option; parse_or_exit tells the user.
[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& why) {
  throw CLI::ValidationError(name, "'" + text + "' " + why);
}

/// An option whose text `parse(text)` turns into its value; `parse` throws what `refuse` does.
template <typename Value, typename Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Value& value, const std::string& help,
                        const char* type_name, Parse parse) {
  return app
      .add_option_function<std::string>(
          name, [&value, parse](const std::string& text) { value = parse(text); }, help)
      ->type_name(type_name);
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

}  // namespace

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& value,
                          const std::string& help) {
  return add_parsed(app, name, value, help, "DUR", [name](const std::string& text) {
    const auto parsed = parse_duration(text);
    if (!parsed) refuse(name, text, "is no duration; want e.g. 250us, 5ms, 1s");
    return *parsed;
  });
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::size_t& value, ByteRange range,
                       const std::string& help) {
  return add_parsed(app, name, value, help, "BYTES", [name, range](const std::string& text) {
    const auto parsed = parse_bytes(text);
    if (!parsed) refuse(name, text, "is no size; want e.g. 512, 16KiB, 1MiB");
    if (*parsed < range.low || *parsed > range.high) refuse(name, text, "is out of range");
    return static_cast<std::size_t>(*parsed);
  });
}

CLI::Option* add_whole_number(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help) {
  return add_parsed(app, name, value, help, "N", [name](const std::string& text) {
    const auto parsed = parse_number<std::uint64_t>(text);
    if (!parsed) refuse(name, text, "is no whole number from 0 to 2^64 - 1");
    return *parsed;
  });
}

CLI::Option* add_share(CLI::App& app, const std::string& name, double& value, const std::string& help) {
  return add_parsed(app, name, value, help, "SHARE", [name](const std::string& text) {
    const auto parsed = parse_number<double>(text);
    if (!parsed || !(*parsed >= 0 && *parsed < 1)) refuse(name, text, "is no share from 0 to below 1");
    return *parsed;
  });
}

CLI::Option* add_bit_rate(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help) {
  return add_parsed(app, name, value, help, "RATE", [name](const std::string& text) {
    const auto parsed = parse_bit_rate(text);
    if (!parsed) refuse(name, text, "is no rate; want e.g. 10mbit, 1gbit");
    return *parsed;
  });
}

CLI::Option* add_url(CLI::App& app, const std::string& name, Url& value, const std::set<std::string>& transports,
                     const std::string& help) {
  return add_parsed(app, name, value, help, "URL", [name, transports](const std::string& text) {
    const auto parsed = parse_url(text);
    if (!parsed) refuse(name, text, "is no URL; want e.g. tcp://127.0.0.1:7000");
    if (!transports.contains(parsed->transport))
      throw CLI::ValidationError(name, "transport '" + parsed->transport + "' is not spoken here");
    return *parsed;
  });
}

}  // namespace netdyno
