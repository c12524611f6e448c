#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "loadgen/codec.hpp"

namespace netdyno::load {

/// Reads the streams of a thread's connections. Most of what comes holds whole replies, and for those one decoder does
/// for all; a connection has one of its own only while it waits for the rest of a reply. With a decoder in each of a
/// thousand connections, every message met cold memory. Owning thread only.
class StreamReader {
 public:
  /// The codec must live as long.
  explicit StreamReader(const Codec& codec) : codec_(codec) {}

  /// Takes the next bytes of the stream that `own` keeps the unfinished reply of, if there is one. False: the stream is
  /// broken and nothing more can be read.
  bool receive(std::unique_ptr<Decoder>& own, std::string_view bytes, ReplySink& sink) {
    std::unique_ptr<Decoder> decoder = own ? std::move(own) : spare();
    const bool good = decoder->receive(bytes, sink);
    if (good) (decoder->at_boundary() ? spare_ : own) = std::move(decoder);
    return good;
  }

 private:
  std::unique_ptr<Decoder> spare() { return spare_ ? std::move(spare_) : codec_.make_decoder(); }

  const Codec& codec_;
  std::unique_ptr<Decoder> spare_;
};

}  // namespace netdyno::load
