#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/measure/stamp.hpp"
#include "loadgen/plan/plan.hpp"

namespace netdyno::load {

/// A whole reply of a foreign server. It does not say which request it answers: it is the oldest of its connection.
/// Valid during the call.
struct PlainReply {
  std::size_t size = 0;      // as it came
  int status = 0;            // http
  std::string_view reason;   // http: the server's words for it
  std::size_t length = 0;    // of the body
  std::uint64_t digest = 0;  // of the body, where it is asked for
  std::string_view body;     // its first bytes, where they are asked for
  bool last = false;         // the connection brings no other
};

/// Receives what a decoder finds in the bytes of a server.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// A whole reply of `size` bytes whose checksum is right.
  virtual void on_reply(const Stamp& stamp, std::size_t size) = 0;
  /// A reply, whole as far as its framing goes, whose content is wrong.
  virtual void on_corrupt() = 0;
  /// A chunk of a stream, the first of which is 0, whose checksum is right. The reply comes with the last.
  virtual void on_chunk(const Stamp&, std::uint64_t) {}
  virtual void on_plain(const PlainReply&) {}
  /// The request with this stamp will have no reply, for a reason in words for people.
  virtual void on_failed(const Stamp&, std::string_view /*why*/) {}
  /// The connection brings no reply after the one before.
  virtual void on_last() {}
  /// Why the stream cannot be read any further, in words for people.
  virtual void on_broken(std::string_view) {}
};

/// Finds the replies in what one connection brings. Owning thread only.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Takes the next bytes of the stream, in any slicing. False: the stream is broken and nothing more can be read.
  virtual bool receive(std::string_view bytes, ReplySink& sink) = 0;
  /// The stream has ended in the middle of a reply, which may be what its end was to tell.
  virtual void end(ReplySink&) {}
  /// The beginning of a reply that has come in part, on a line for people; empty where it says nothing to them.
  virtual std::string begun() const { return {}; }
  /// Whether the stream stands between two replies, so that a new decoder could go on in this one's place.
  virtual bool at_boundary() const = 0;
};

/// The generator's half of a workload: what a message looks like, and how to read what comes back. A request is a
/// function of its stamp alone, so that a message that has to wait needs no buffer. Owning thread only.
class Codec {
 public:
  virtual ~Codec() = default;
  /// Appends a request. Returns the size of its header, which `--write-mode split` sends on its own (0: has none).
  virtual std::size_t encode(const Stamp& stamp, std::string& out) = 0;
  /// Bytes that the reply to a request has; nothing where the server has a say in that.
  virtual std::optional<std::size_t> reply_size(const Stamp& stamp) const = 0;
  /// The fault in a foreign server's answer to a request, in words for people; empty where there is none.
  virtual std::string fault_of(const PlainReply&, const Stamp&) { return {}; }
  /// The decoder must not outlive its codec.
  virtual std::unique_ptr<Decoder> make_decoder() const = 0;
};

std::unique_ptr<Codec> make_codec(const LoadPlan& plan);

}  // namespace netdyno::load
