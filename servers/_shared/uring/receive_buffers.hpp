#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "servers/_shared/uring/ring.hpp"

namespace netdyno {

/// The buffers that the kernel reads into, for all connections of a ring (io_uring_register_buf_ring(3)): it takes one
/// when something has arrived, so that a connection which is silent has none. Each is given back in the turn in which
/// it was filled, so a turn brings as much as there are buffers at most. Where there are too few, an operation ends
/// with ENOBUFS, and is to be asked for again. Ring's thread only, after the constructor.
class ReceiveBuffers {
 public:
  ReceiveBuffers(Ring& ring, std::size_t size);
  ~ReceiveBuffers();
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

  /// The buffer group to set in an operation that takes buffers from here.
  static constexpr std::uint16_t group = 0;

  /// The bytes that a completion brought; valid until they are given back.
  std::string_view bytes(Completion completion) const;
  /// The completion's buffer, if it has one.
  void give_back(Completion completion);

 private:
  char* address(std::uint16_t id) const { return memory_ + id * size_; }
  void add(std::uint16_t id);

  const std::size_t size_;   // of each
  const std::size_t count_;  // a power of two
  io_uring_buf_ring* const free_;
  char* const memory_;
};

}  // namespace netdyno
