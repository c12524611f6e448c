#include "common/option_values.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "common/units.hpp"

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

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& value,
                          const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) throw CLI::ValidationError(name, "'" + text + "' is no duration; want e.g. 250us, 5ms, 1s");
            value = *parsed;
          },
          help)
      ->type_name("DUR");
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::size_t& value, ByteRange range,
                       const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, range](const std::string& text) {
            const auto parsed = parse_bytes(text);
            if (!parsed) throw CLI::ValidationError(name, "'" + text + "' is no size; want e.g. 512, 16KiB, 1MiB");
            if (*parsed < range.low || *parsed > range.high)
              throw CLI::ValidationError(name, "'" + text + "' is out of range");
            value = static_cast<std::size_t>(*parsed);
          },
          help)
      ->type_name("BYTES");
}

CLI::Option* add_whole_number(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help) {
  // Not the parser's own conversion: it reads nothing as 0, and -1 as 2^64 - 1.
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const char* const end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || stopped != end)
              throw CLI::ValidationError(name, "'" + text + "' is no whole number from 0 to 2^64 - 1");
          },
          help)
      ->type_name("N");
}

CLI::Option* add_share(CLI::App& app, const std::string& name, double& value, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const char* const end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || stopped != end || !(value >= 0 && value < 1))
              throw CLI::ValidationError(name, "'" + text + "' is no share from 0 to below 1");
          },
          help)
      ->type_name("SHARE");
}

CLI::Option* add_bit_rate(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = parse_bit_rate(text);
            if (!parsed) throw CLI::ValidationError(name, "'" + text + "' is no rate; want e.g. 10mbit, 1gbit");
            value = *parsed;
          },
          help)
      ->type_name("RATE");
}

CLI::Option* add_url(CLI::App& app, const std::string& name, Url& value, const std::set<std::string>& transports,
                     const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, transports](const std::string& text) {
            const auto parsed = parse_url(text);
            if (!parsed) throw CLI::ValidationError(name, "'" + text + "' is no URL; want e.g. tcp://127.0.0.1:7000");
            if (!transports.contains(parsed->transport))
              throw CLI::ValidationError(name, "transport '" + parsed->transport + "' is not spoken here");
            value = *parsed;
          },
          help)
      ->type_name("URL");
}

}  // namespace netdyno
