#include "lib/cli/completion.hpp"

#include <algorithm>

namespace netdyno {
namespace {

bool takes_file(const CompletedOption& option) { return option.takes.ends_with("FILE"); }

/// The words of "on|off"; what is in capitals stands for something else.
std::string words_of(const CompletedOption& option) {
  const bool choice = option.takes.find('|') != std::string::npos &&
                      std::ranges::none_of(option.takes, [](char c) { return c >= 'A' && c <= 'Z'; });
  std::string words = choice ? option.takes : "";
  std::ranges::replace(words, '|', ' ');
  return words;
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

std::string function_of(std::string program) {
  std::ranges::replace_if(
      program, [](char c) { return c == '-' || c == '.'; }, '_');
  return "_" + program;
}

std::string bash(const std::string& program, const std::vector<CompletedOption>& options) {
  std::string all, cases;
  for (const CompletedOption& option : options) {
    all += joined(option.names, " ") + " ";
    const std::string words = words_of(option);
    if (option.takes.empty()) continue;
    cases += "    " + joined(option.names, "|") + ") ";
    if (takes_file(option))
      cases += "mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n";
    else
      cases += "mapfile -t COMPREPLY < <(compgen -W '" + words + "' -- \"$word\") ;;\n";
  }
  const std::string function = function_of(program);
  return function + "() {\n  local word=${COMP_WORDS[COMP_CWORD]}\n  case ${COMP_WORDS[COMP_CWORD - 1]} in\n" + cases +
         "    *) mapfile -t COMPREPLY < <(compgen -W '" + all + "' -- \"$word\") ;;\n  esac\n}\ncomplete -F " +
         function + " " + program + "\n";
}

/// Escapes text for the single quotes of a specification for _arguments (zshcompsys(1)).
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c == '\'' ? std::string{"'\\''"} : std::string{c};
  }
  return safe;
}

std::string zsh(const std::string& program, const std::vector<CompletedOption>& options) {
  std::string text = "#compdef " + program + "\n" + function_of(program) + "() {\n  _arguments";
  for (const CompletedOption& option : options) {
    std::string value;
    if (takes_file(option))
      value = ":file:_files";
    else if (const std::string words = words_of(option); !words.empty())
      value = ":value:(" + words + ")";
    else if (!option.takes.empty())
      value = ":" + quoted(option.takes) + ":";
    for (const std::string& name : option.names)
      text += " \\\n    '" + name + "[" + quoted(option.help) + "]" + value + "'";
  }
  return text + " \\\n    ':url:'\n}\ncompdef " + function_of(program) + " " + program + "\n";
}

std::string fish(const std::string& program, const std::vector<CompletedOption>& options) {
  const std::string begin = "complete -c " + program;
  std::string text = begin + " -f\n";
  for (const CompletedOption& option : options) {
    text += begin;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (takes_file(option))
      text += " -r -F";
    else if (!option.takes.empty())
      text += " -x -a '" + words_of(option) + "'";
    text += " -d '";
    for (const char c : option.help) text += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    text += "'\n";
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& program, const std::string& shell,
                              const std::vector<CompletedOption>& options) {
  return shell == "fish" ? fish(program, options) : shell == "zsh" ? zsh(program, options) : bash(program, options);
}

}  // namespace netdyno
