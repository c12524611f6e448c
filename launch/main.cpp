// Starts a server that is not written in C++: reads its options as every C++ server does, and hands them over resolved,
// as one JSON argument (protocol/WIRE.md, "Options").
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cli/command_line.hpp"
#include "lib/cli/die.hpp"
#include "lib/server/options.hpp"

namespace netdyno {
namespace {

std::optional<ThreadModel> read_thread_model(std::string_view word) {
  if (word == "any") return ThreadModel::any;
  if (word == "one") return ThreadModel::one;
  if (word == "per-connection") return ThreadModel::per_connection;
  return std::nullopt;
}

/// Takes a word and the comma before it off the end of what a server offers.
bool take_offer(std::string_view& offered, std::string_view word) {
  if (!offered.ends_with(word)) return false;
  offered.remove_suffix(word.size());
  return true;
}

[[noreturn]] void print_usage() {
  std::fputs("usage: netdyno-launch NAME any|one|per-connection[,tls][,pool] PROGRAM [ARGUMENT...] -- [OPTION...]\n",
             stderr);
  std::exit(2);
}

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const std::span arguments{argv, static_cast<std::size_t>(argc)};
  const auto separator =
      std::find_if(arguments.begin(), arguments.end(), [](const char* text) { return std::string_view{text} == "--"; });
  if (separator == arguments.end() || separator - arguments.begin() < 4) print_usage();
  std::string_view model{arguments[2]};
  const Backend backend = take_offer(model, ",pool") ? Backend::pool : Backend::none;
  const bool has_tls = take_offer(model, ",tls");
  const auto threads = read_thread_model(model);
  if (!threads) print_usage();

  std::vector<const char*> command_line{arguments[1]};
  command_line.insert(command_line.end(), separator + 1, arguments.end());
  const ServerOptions options =
      parse_server_options(static_cast<int>(command_line.size()), command_line.data(), {*threads, backend});
  if (options.backend.transport == "postgresql")
    usage_error(arguments[1],
                std::string{"--backend: "} + arguments[1] + " has no driver of PostgreSQL; want tcp://HOST:PORT");
  if (options.tls && !has_tls) usage_error(arguments[1], std::string{"--tls: "} + arguments[1] + " has no TLS");
  std::string resolved = format_resolved(options);

  std::vector<char*> program{arguments.begin() + 3, separator};
  program.push_back(resolved.data());
  program.push_back(nullptr);
  execvp(program.front(), program.data());
  die_errno(std::string{"cannot start "} + program.front(), errno);
}
