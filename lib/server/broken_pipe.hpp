#pragma once

namespace netdyno {

class CommandLine;

/// --sigpipe: whether a send to a client that has gone ends the server by SIGPIPE, as send(2) does where a program asks
/// for nothing else. UNSAFE, and no default: a client that leaves early ends the server for all others. Main thread
/// only.
class BrokenPipe {
 public:
  /// It must outlive the parsing.
  void add_option(CommandLine& line);
  /// After termination_signals(), which ignores the signal, and before any thread starts.
  void apply() const;

 private:
  bool ends_ = false;
};

}  // namespace netdyno
