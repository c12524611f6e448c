#pragma once

#include <string>
#include <vector>

namespace netdyno {

struct CompletedOption {
  std::vector<std::string> names;
  std::string takes;  // "FILE", "on|off", what else it is called; empty: nothing
  std::string help;
};

/// The script by which bash, zsh or fish completes the options of a program, to be sourced.
std::string completion_script(const std::string& program, const std::string& shell,
                              const std::vector<CompletedOption>& options);

}  // namespace netdyno
