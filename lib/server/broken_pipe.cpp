#include "lib/server/broken_pipe.hpp"

#include "lib/cli/option_values.hpp"
#include "lib/net/send.hpp"

namespace netdyno {

void BrokenPipe::add_option(CommandLine& line) {
  add_choice(line, "--sigpipe", ends_, {{"ignored", false}, {"ends", true}},
             "a send to a client that has gone fails, or ends the server by SIGPIPE (unsafe)");
}

void BrokenPipe::apply() const {
  if (ends_) end_at_broken_pipes();
}

}  // namespace netdyno
