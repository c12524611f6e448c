#pragma once

#include <memory>
#include <string_view>

#include "lib/session/counters.hpp"
#include "lib/session/effects.hpp"
#include "lib/session/memory.hpp"
#include "lib/session/options.hpp"

namespace netdyno {

/// The work of one connection without any I/O: bytes in, effects out. It knows nothing of sockets, threads or loops,
/// so every contestant does the same work for the same workload. One thread at a time may call it.
class Session {
 public:
  explicit Session(Counters& counters) : counters_(counters) {}
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Takes the next bytes of the stream, in any slicing, and appends what is to be done. After a `close` effect
  /// further bytes are ignored. Without memory for them, nothing but a `close` is to be done.
  void receive(std::string_view bytes, Effects& effects) {
    counters_.add_bytes_in(bytes.size());
    if (closed_ || has_memory_for(counters_, [&] { on_bytes(bytes, effects); })) return;
    effects.clear();
    close(effects);
  }

  /// The same for bytes that did not come as they are: the session around this one counts those, and has the memory.
  void take(std::string_view bytes, Effects& effects) {
    if (!closed_) on_bytes(bytes, effects);
  }

  /// The peer ended its stream: appends what is still pending, and `close`. Without memory, nothing but the `close`.
  void end(Effects& effects) {
    if (closed_ || has_memory_for(counters_, [&] { take_end(effects); })) return;
    effects.clear();
    close(effects);
  }

  /// The same for the end of a stream that another session has the memory for.
  void take_end(Effects& effects) {
    if (closed_) return;
    on_end(effects);
    if (!closed_) close(effects);
  }

 protected:
  virtual void on_bytes(std::string_view bytes, Effects& effects) = 0;
  virtual void on_end(Effects& effects) = 0;

  void close(Effects& effects) {
    closed_ = true;
    effects.close();
  }
  void protocol_error(Effects& effects) {
    counters_.add_protocol_error();
    close(effects);
  }
  bool closed() const { return closed_; }
  Counters& counters() { return counters_; }

 private:
  Counters& counters_;
  bool closed_ = false;
};

/// The session of the workload that `options` name. `counters` must outlive it.
std::unique_ptr<Session> make_session(const SessionOptions& options, Counters& counters);

}  // namespace netdyno
