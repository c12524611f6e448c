#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/cli/url.hpp"

namespace netdyno {

/// A contestant in a process of its own, from its ready line to SIGTERM.
class ServerProcess {
 public:
  ServerProcess(const std::string& name, const std::vector<std::string>& options) {
    const std::string program = std::string{NETDYNO_BINARY_DIR} + "/servers/" + name;
    std::vector<const char*> argv{program.c_str()};
    for (const auto& option : options) argv.push_back(option.c_str());
    argv.push_back(nullptr);

    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv(program.c_str(), const_cast<char**>(argv.data()));
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
    ready_ = read_line();
  }
  ~ServerProcess() {
    if (pid_ > 0) stop();
    std::fclose(output_);
  }

  Url url() const { return parse_url(ready_.at("endpoint").get<std::string>()).value(); }

  /// SIGTERM; returns the line of totals.
  nlohmann::json stop() {
    kill(pid_, SIGTERM);
    const auto totals = read_line();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return totals;
  }

 private:
  nlohmann::json read_line() {
    std::string line;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) line += static_cast<char>(c);
    return nlohmann::json::parse(line);
  }

  pid_t pid_ = -1;
  std::FILE* output_ = nullptr;
  nlohmann::json ready_;
};

}  // namespace netdyno
