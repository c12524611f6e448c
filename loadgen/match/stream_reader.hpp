#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "loadgen/codec/codec.hpp"

namespace netdyno::load {

/// Reads the streams of a thread's connections. Most of what comes holds whole replies, and for those one decoder does
/// for all; a connection has one of its own only while it waits for the rest of a reply. With a decoder in each of a
/// thousand connections, every message met cold memory. Owning thread only.
class StreamReader {
 public:
  /// The codec must live as long.
  explicit StreamReader(const Codec& codec) : codec_(codec), spare_(codec.make_decoder()) {}

  /// Takes the next bytes of the stream that `own` keeps the unfinished reply of, if there is one. False: the stream is
  /// broken and nothing more can be read.
  bool receive(std::unique_ptr<Decoder>& own, std::string_view bytes, ReplySink& sink) {
    if (own) {
      const bool good = own->receive(bytes, sink);
      if (own->at_boundary()) own.reset();
      return good;
    }
    const bool good = spare_->receive(bytes, sink);
    if (good && spare_->at_boundary()) return true;
    own = std::exchange(spare_, codec_.make_decoder());
    return good;
  }

 private:
  const Codec& codec_;
  std::unique_ptr<Decoder> spare_;  // between two replies
};

}  // namespace netdyno::load
