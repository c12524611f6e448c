#include "loadgen/codec/websocket_frame.hpp"

#include <algorithm>

namespace netdyno::load {
namespace {

constexpr unsigned char last_fragment = 0x80;
constexpr unsigned char masked = 0x80;
constexpr std::size_t longest_control = 125;
constexpr std::size_t two_bytes = 126;  // of length follow
constexpr std::size_t eight_bytes = 127;

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

}  // namespace

void frame_websocket(Opcode opcode, std::uint32_t mask, std::string& out, std::size_t begin) {
  const std::size_t size = out.size() - begin;
  std::array<char, 14> head{};
  std::size_t used = 0;
  const auto put = [&](std::uint64_t value, unsigned bytes) {
    while (bytes-- > 0) head[used++] = static_cast<char>(value >> (8 * bytes));
  };
  put(last_fragment | static_cast<unsigned>(opcode), 1);
  put(masked | (size <= longest_control ? size : size <= 0xffff ? two_bytes : eight_bytes), 1);
  if (size > longest_control) put(size, size <= 0xffff ? 2 : 8);
  put(mask, 4);
  for (std::size_t i = 0; i < size; ++i)
    out[begin + i] = static_cast<char>(byte_of(out[begin + i]) ^ byte_of(head[used - 4 + i % 4]));
  out.insert(begin, head.data(), used);
}

const char* WebSocketReader::receive(std::string_view bytes, std::string& data, ControlFrames& control) {
  while (!bytes.empty()) {
    if (!inside_) {
      const std::size_t taken = bytes.copy(head_.data() + head_taken_, head_size() - head_taken_);
      head_taken_ += taken;
      bytes.remove_prefix(taken);
      if (head_taken_ == 2)
        if (const char* wrong = check_head()) return wrong;
      if (head_taken_ < head_size()) continue;
      if (const char* wrong = begin_frame()) return wrong;
    }
    const std::string_view piece =
        bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size())));
    left_ -= piece.size();
    bytes.remove_prefix(piece.size());
    if (const char* wrong = take(piece, data)) return wrong;
    if (left_ > 0) continue;
    inside_ = false;
    const auto opcode = static_cast<Opcode>(byte_of(head_[0]) & 0x0fU);
    if (opcode == Opcode::ping) control.ping = control_;
    if (opcode == Opcode::close) {
      control.close = control_;
      return nullptr;
    }
    control_.clear();
  }
  return nullptr;
}

const char* WebSocketReader::take(std::string_view piece, std::string& data) {
  if (is_control()) {
    control_.append(piece);
    return nullptr;
  }
  // A message of text is UTF-8 as a whole; its frames may divide a character (5.6, 8.1).
  const std::size_t valid = is_text_ ? text_.take(piece) : piece.size();
  data.append(piece.substr(0, valid));  // the same however the stream is cut
  const bool ends = left_ == 0 && !more_;
  if (valid < piece.size() || (is_text_ && ends && !text_.is_whole())) return "text that is not UTF-8";
  return nullptr;
}

/// Two bytes, until they say how many more.
std::size_t WebSocketReader::head_size() const {
  if (head_taken_ < 2) return 2;
  const unsigned size = byte_of(head_[1]);
  return size < two_bytes ? 2 : size == two_bytes ? 4 : 10;
}

const char* WebSocketReader::check_head() const {
  const unsigned opcode = byte_of(head_[0]) & 0x0fU;
  const bool known = opcode <= 2 || (opcode >= 8 && opcode <= 10);
  if ((byte_of(head_[0]) & 0x70U) != 0) return "a frame of an extension that was not agreed on";
  if (!known) return "a frame of an unknown kind";
  if ((byte_of(head_[1]) & masked) != 0) return "a masked frame, which only clients send";
  if (is_control() && ((byte_of(head_[0]) & last_fragment) == 0 || byte_of(head_[1]) > longest_control))
    return "a control frame that is too long or in parts";
  if (!is_control() && (opcode == 0) != more_)
    return more_ ? "a message within another" : "the middle of a message without its beginning";
  return nullptr;
}

const char* WebSocketReader::begin_frame() {
  left_ = byte_of(head_[1]);
  if (head_taken_ > 2) {
    left_ = 0;
    for (std::size_t i = 2; i < head_taken_; ++i) left_ = left_ << 8U | byte_of(head_[i]);
    if (left_ >> 63U != 0) return "a frame whose length is negative";
    if (left_ < two_bytes || (head_taken_ > 4 && left_ <= 0xffff)) return "a frame whose length has too many bytes";
  }
  if (!is_control()) more_ = (byte_of(head_[0]) & last_fragment) == 0;
  if (const auto opcode = static_cast<Opcode>(byte_of(head_[0]) & 0x0fU);
      opcode == Opcode::text || opcode == Opcode::binary) {
    is_text_ = opcode == Opcode::text;
    text_ = {};
  }
  head_taken_ = 0;
  inside_ = true;
  return nullptr;
}

}  // namespace netdyno::load
