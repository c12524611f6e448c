#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loadgen/codec/utf8.hpp"

/// The frames of WebSocket (RFC 6455, 5.2).
namespace netdyno::load {

enum class Opcode : unsigned char { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// Makes a frame of what stands in `out` from `begin` on, masked as a client's has to be.
void frame_websocket(Opcode opcode, std::uint32_t mask, std::string& out, std::size_t begin);

/// Takes apart what a server sends, in any slicing. It keeps no more than the head of a frame, and what a control frame
/// holds.
class WebSocketReader {
 public:
  /// The control frames that the last call of `receive` has met.
  struct ControlFrames {
    std::optional<std::string> ping;   // the last one: the others need no answer (5.5.3)
    std::optional<std::string> close;  // nothing is read after it
  };

  /// Appends what the bytes hold of data. Returns what makes them no frames, in words; nullptr where they are.
  const char* receive(std::string_view bytes, std::string& data, ControlFrames& control);

 private:
  const char* begin_frame();
  const char* take(std::string_view piece, std::string& data);
  const char* check_head() const;
  std::size_t head_size() const;
  bool is_control() const { return (static_cast<unsigned char>(head_[0]) & 0x08U) != 0; }

  std::array<char, 10> head_{};
  std::size_t head_taken_ = 0;
  std::uint64_t left_ = 0;  // of a frame whose head is whole
  bool inside_ = false;     // such a frame
  bool more_ = false;       // the message goes on in another frame
  bool is_text_ = false;    // of the message
  Utf8 text_;
  std::string control_;
};

}  // namespace netdyno::load
