#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/protocol/pending.hpp"

namespace netdyno {

inline constexpr std::size_t frame_header_size = 4;

/// A body's length as 4 bytes in network byte order.
std::array<char, frame_header_size> encode_frame_header(std::size_t body_size);
std::uint32_t decode_frame_header(const char* header);

/// Cuts a byte stream into frames, whatever the slicing. Bytes are copied only while a frame is incomplete.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_frame) : max_frame_(max_frame) {}

  /// Calls `frame(body)` for each complete frame; stops early when it returns false. Returns false when a length is 0
  /// or above the limit: the stream is broken from there on.
  template <typename OnFrame>
  bool receive(std::string_view bytes, OnFrame&& frame) {
    if (pending_.empty()) {
      const bool good = consume(bytes, frame);
      if (!bytes.empty()) pending_.append(bytes);
      return good;
    }
    pending_.append(bytes);
    std::string_view rest = pending_.view();
    if (rest.size() < find_needed(rest)) return is_valid_header(rest);
    const bool good = consume(rest, frame);
    pending_.drop(pending_.size() - rest.size());
    return good;
  }

  /// True when the stream stands between two frames.
  bool at_boundary() const { return pending_.empty(); }

 private:
  bool is_valid_header(std::string_view bytes) const {
    if (bytes.size() < frame_header_size) return true;
    const auto length = decode_frame_header(bytes.data());
    return length > 0 && length <= max_frame_;
  }
  static std::size_t find_needed(std::string_view bytes) {
    return bytes.size() < frame_header_size ? frame_header_size : frame_header_size + decode_frame_header(bytes.data());
  }
  /// Takes complete frames off the front of `bytes`.
  template <typename OnFrame>
  bool consume(std::string_view& bytes, OnFrame& frame) {
    while (bytes.size() >= frame_header_size) {
      if (!is_valid_header(bytes)) return false;
      const std::size_t size = find_needed(bytes);
      if (bytes.size() < size) return true;
      const bool more = frame(bytes.substr(frame_header_size, size - frame_header_size));
      bytes.remove_prefix(size);
      if (!more) return true;
    }
    return true;
  }

  std::size_t max_frame_;
  PendingBytes pending_;
};

/// The parts of a stream of frames: each length, then its body, for a server that reads one part at a time.
class FrameParts {
 public:
  /// The bytes that the current part lacks, at least 1.
  std::size_t missing() const { return missing_; }
  /// At most that many, as they were read.
  void take(std::string_view bytes);

 private:
  std::array<char, frame_header_size> header_{};
  std::size_t missing_ = frame_header_size;
  bool in_body_ = false;
};

}  // namespace netdyno
