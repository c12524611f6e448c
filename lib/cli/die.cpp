#include "lib/cli/die.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace netdyno {

void die(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(1);
}

void die_errno(const std::string& what, int error) { die(fmt::format("{}: {}", what, std::strerror(error))); }

}  // namespace netdyno
