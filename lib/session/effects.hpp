#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/protocol/workload.hpp"

namespace netdyno {

/// A complete frame, header included, that any number of recipients share. Immutable, so any thread may read it.
struct Frame {
  std::string bytes;
  std::size_t header = 0;
};
using SharedFrame = std::shared_ptr<const Frame>;

/// One thing that a session asks of its server.
struct Effect {
  enum class Kind {
    write,      // send Effects::bytes(effect) to this connection, in a write of its own
    broadcast,  // send `frame` to the audience
    wait,       // let `remaining()` pass before the next effect, without holding up other connections; with service
                // kind backend, ask the backend for it
    burn,       // keep this core busy for `duration` (burn_cpu)
    close       // close this connection once the writes before it are sent
  };
  Kind kind;
  std::size_t offset = 0;  // write: where the bytes are
  std::size_t size = 0;
  std::chrono::nanoseconds duration{0};
  SharedFrame frame = {};
  std::chrono::steady_clock::time_point due = {};  // wait: until then, in place of the duration

  /// wait: how long from now on.
  std::chrono::nanoseconds remaining() const {
    if (due == std::chrono::steady_clock::time_point{}) return duration;
    return std::max(std::chrono::nanoseconds{0}, due - std::chrono::steady_clock::now());
  }
};

/// The work that a session requests, in order: carry out one effect after the other, finish all of them before the next
/// `Session::receive` of the same connection, then `clear()`. When, on which thread and how is the model's business.
class Effects {
 public:
  /// There is room for a `close` from the beginning: it is what is done where memory ran out.
  explicit Effects(WriteMode mode) : mode_(mode) { list_.reserve(1); }

  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  bool empty() const { return list_.empty(); }

  /// Bytes of a write; valid until `clear()`.
  std::string_view bytes(const Effect& write) const {
    return std::string_view{storage_}.substr(write.offset, write.size);
  }

  void clear() {
    list_.clear();
    storage_.clear();
  }

  /// A reply of two parts (the first may be empty). Gathered: joins the write before it. Split: a write per part.
  void reply(std::string_view header, std::string_view body);
  void broadcast(SharedFrame frame) { list_.push_back({.kind = Effect::Kind::broadcast, .frame = std::move(frame)}); }
  /// Nothing is added for a duration of 0.
  void serve(ServiceKind kind, std::chrono::nanoseconds duration);
  /// A wait that another session requests.
  void wait(const Effect& effect) { list_.push_back(effect); }
  void wait_until(std::chrono::steady_clock::time_point due) {
    list_.push_back({.kind = Effect::Kind::wait, .due = due});
  }
  void close() { list_.push_back({.kind = Effect::Kind::close}); }

 private:
  void write(std::string_view bytes);

  WriteMode mode_;
  std::string storage_;
  std::vector<Effect> list_;
};

/// Calls `send(bytes)` once per write that `mode` asks for.
template <typename Send>
void for_each_part(const Frame& frame, WriteMode mode, Send&& send) {
  const std::string_view bytes{frame.bytes};
  if (mode == WriteMode::split && frame.header > 0 && frame.header < bytes.size()) {
    send(bytes.substr(0, frame.header));
    send(bytes.substr(frame.header));
  } else {
    send(bytes);
  }
}

/// Keeps this thread's core busy for `duration` of its own CPU time (so being preempted does not count as work).
void burn_cpu(std::chrono::nanoseconds duration);

}  // namespace netdyno
