#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace netdyno {

/// The last part of argv[0].
std::string program_name(const char* argv0);

/// Prints `<program>: <message>` on stderr and ends with exit 2.
[[noreturn]] void usage_error(const std::string& program, const std::string& message);

/// Reports a refused value: `name: message`, which CommandLine::parse shows to the user.
[[noreturn]] void refuse_value(const std::string& name, const std::string& message);

/// States more about an option that has been added.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& type_name(const std::string& text);
  /// Reads it where it stands: CLI11 2.6 looks for required options before it reads others.
  Option& read_at_once();

 private:
  CLI::Option* option_;
};

/// A program's options. The parser behind it, CLI11, takes seconds to compile, so only command_line.cpp sees it. The
/// values must outlive it.
class CommandLine {
 public:
  CommandLine(const std::string& description, const char* argv0);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  const std::string& program() const { return program_; }

  Option add_flag(const std::string& name, bool& value, const std::string& help);
  Option add_text(const std::string& name, std::string& value, const std::string& help);
  /// Texts with commas between.
  Option add_texts(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// A number of type int, unsigned or std::size_t.
  template <typename Number>
  Option add_number(const std::string& name, Number& value, Number low, Number high, const std::string& help);
  /// Numbers with commas between.
  Option add_numbers(const std::string& name, std::vector<int>& values, int low, int high, const std::string& help);
  /// `read` takes the text of the option, or calls refuse_value.
  Option add_read(const std::string& name, std::function<void(const std::string&)> read, const std::string& help);
  /// The same of an option that may be given several times: once for each.
  Option add_read_each(const std::string& name, std::function<void(const std::string&)> read, const std::string& help);

  /// `--version`, which prints this.
  void add_version(const std::string& text);
  /// `--completion bash|zsh|fish`, which prints a script that makes this shell complete the options (completion.cpp).
  void add_completion();

  /// Takes away each option but --help, the positional ones, and those of these long names.
  void keep_only(const std::set<std::string>& names);

  /// Exit 0 after `--help`, exit 2 with one clear line on anything that cannot be parsed.
  void parse(int argc, const char* const* argv);
  /// False too where the program has no such option.
  bool given(const std::string& name) const;

 private:
  std::string program_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace netdyno
