#include "lib/protocol/pending.hpp"
#include "lib/session/sessions.hpp"

namespace netdyno {
namespace {

/// Source D's `process`: what was read is split by line before it is echoed.
class LinesSession final : public Session {
 public:
  LinesSession(std::size_t max_line, Counters& counters) : Session(counters), max_line_(max_line) {}

 private:
  void on_bytes(std::string_view bytes, Effects& effects) override {
    while (!closed() && !bytes.empty()) {
      const auto newline = bytes.find('\n');
      const auto piece = bytes.substr(0, newline == std::string_view::npos ? newline : newline + 1);
      bytes.remove_prefix(piece.size());
      if (pending_.size() + piece.size() > max_line_) return protocol_error(effects);
      if (newline == std::string_view::npos) {
        pending_.append(piece);
      } else {
        echo_line(piece, effects);
      }
    }
  }

  void echo_line(std::string_view tail, Effects& effects) {
    counters().add_request();
    if (pending_.empty()) return effects.reply({}, tail);
    pending_.append(tail);
    effects.reply({}, pending_.view());
    pending_.clear();
  }

  void on_end(Effects& effects) override {
    if (!pending_.empty()) echo_line({}, effects);
  }

  std::size_t max_line_;
  PendingBytes pending_;
};

}  // namespace

std::unique_ptr<Session> make_lines_session(const SessionOptions& options, Counters& counters) {
  return std::make_unique<LinesSession>(options.max_frame, counters);
}

}  // namespace netdyno
