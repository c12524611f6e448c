#include "lib/cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lib/cli/completion.hpp"
#include "lib/cli/standard_streams.hpp"

namespace netdyno {
namespace {

/// Leaves the beginning of a text, and its end, which says what to do: the value between them may be long.
std::string cut_middle(const std::string& text) {
  constexpr std::size_t most_shown = 2000, end_shown = 600;
  if (text.size() <= most_shown) return text;
  const auto begin_of_char = [&text](std::size_t at) {
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
    return at;
  };
  const std::size_t first = begin_of_char(most_shown - end_shown), last = begin_of_char(text.size() - end_shown);
  return fmt::format("{} [... {} bytes ...] {}", text.substr(0, first), last - first, text.substr(last));
}

/// Whatever the caller put into an argument, the message about it stays one line and does nothing to a terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return text;
}

/// From 2.5 on CLI11 would fill the lines of a description, in which each example has its own.
void keep_lines_of_description(auto& formatter) {
  if constexpr (requires { formatter.enable_description_formatting(false); }) {
    formatter.enable_description_formatting(false);
  }
}

}  // namespace

std::string program_name(const char* argv0) {
  const std::string path = argv0;
  return path.substr(path.rfind('/') + 1);
}

void usage_error(const std::string& program, const std::string& message) {
  std::fprintf(stderr, "%s: %s (--help lists the options)\n", program.c_str(), printable(cut_middle(message)).c_str());
  std::exit(2);
}

void refuse_value(const std::string& name, const std::string& message) { throw CLI::ValidationError(name, message); }

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type_name(const std::string& text) {
  option_->type_name(text);
  return *this;
}

Option& Option::read_at_once() {
  option_->trigger_on_parse();
  return *this;
}

CommandLine::CommandLine(const std::string& description, const char* argv0)
    : program_(program_name(argv0)), app_(std::make_unique<CLI::App>(description)) {
  guard_standard_streams();
  app_->name(program_);
  keep_lines_of_description(*app_->get_formatter());
}

CommandLine::~CommandLine() = default;

Option CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option{app_->add_flag(name, value, help)};
}

Option CommandLine::add_text(const std::string& name, std::string& value, const std::string& help) {
  return Option{app_->add_option(name, value, help)};
}

Option CommandLine::add_texts(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Option{app_->add_option(name, values, help)->delimiter(',')};
}

template <typename Number>
Option CommandLine::add_number(const std::string& name, Number& value, Number low, Number high,
                               const std::string& help) {
  return Option{app_->add_option(name, value, help)->check(CLI::Range(low, high))};
}
template Option CommandLine::add_number(const std::string&, int&, int, int, const std::string&);
template Option CommandLine::add_number(const std::string&, unsigned&, unsigned, unsigned, const std::string&);
template Option CommandLine::add_number(const std::string&, std::size_t&, std::size_t, std::size_t, const std::string&);

Option CommandLine::add_numbers(const std::string& name, std::vector<int>& values, int low, int high,
                                const std::string& help) {
  return Option{
      app_->add_option(name, values, help)->delimiter(',')->allow_extra_args(false)->check(CLI::Range(low, high))};
}

Option CommandLine::add_read(const std::string& name, std::function<void(const std::string&)> read,
                             const std::string& help) {
  return Option{app_->add_option_function<std::string>(name, std::move(read), help)};
}

Option CommandLine::add_read_each(const std::string& name, std::function<void(const std::string&)> read,
                                  const std::string& help) {
  const auto read_all = [read = std::move(read)](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) read(text);
  };
  return Option{app_->add_option_function<std::vector<std::string>>(name, read_all, help)->allow_extra_args(false)};
}

void CommandLine::add_version(const std::string& text) {
  app_->set_version_flag("--version", text, "print the version");
}

void CommandLine::add_completion() {
  const auto print = [this](const std::string& shell) {
    if (shell != "bash" && shell != "zsh" && shell != "fish")
      refuse_value("--completion", "'" + shell + "' is none of bash, zsh and fish");
    std::vector<CompletedOption> options;
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_positional()) continue;
      CompletedOption completed{
          {}, option->get_type_size() > 0 ? option->get_type_name() : "", option->get_description()};
      for (const std::string& name : option->get_snames()) completed.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) completed.names.push_back("--" + name);
      options.push_back(completed);
    }
    std::fputs(completion_script(program_, shell, options).c_str(), stdout);
    std::exit(0);
  };
  add_read("--completion", print, "print what a shell completes these options by")
      .type_name("bash|zsh|fish")
      .read_at_once();
}

void CommandLine::keep_only(const std::set<std::string>& names) {
  for (CLI::Option* option : app_->get_options()) {
    const bool always = option == app_->get_help_ptr() || option->get_positional();
    if (!always && !names.contains("--" + option->get_lnames().front())) app_->remove_option(option);
  }
}

void CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_->help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    usage_error(program_, error.what());
  }
}

bool CommandLine::given(const std::string& name) const {
  const auto* const option = app_->get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace netdyno
