#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "loadgen/codec/codec.hpp"

namespace netdyno::load {

/// Reads what comes as whole messages (carries_messages): each is one reply or a corrupt one, and leaves nothing behind
/// that the next could continue. Because of that one reader does for all connections of a thread. Owning thread only.
class MessageReader final : private ReplySink {
 public:
  /// The codec must live as long.
  explicit MessageReader(const Codec& codec) : codec_(codec), decoder_(codec.make_decoder()) {}

  /// Tells `sink` exactly once what the message is.
  void receive(std::string_view message, ReplySink& sink);

 private:
  void on_reply(const Stamp& stamp, std::size_t size) override;
  void on_corrupt() override { only_replies_ = false; }

  const Codec& codec_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<Stamp> stamp_;
  std::size_t size_ = 0;  // of all replies that the message held
  bool only_replies_ = true;
};

}  // namespace netdyno::load
