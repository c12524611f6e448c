#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "lib/net/datagram/address.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"
#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// The longest message that a server with these options takes (protocol/WIRE.md).
inline std::size_t longest_datagram(const ServerOptions& options) {
  return std::min(options.max_frame + frame_header_size, max_datagram);
}

/// Receives datagrams, many with one system call. One thread.
class Receiver {
 public:
  /// As many as one recvmmsg(2) brings at most; beyond some dozens, more of them save next to nothing.
  static constexpr unsigned batch = 64;

  /// Counts and drops what is longer than `longest` bytes. `merged`: the socket has merge_arrivals().
  Receiver(std::size_t longest, bool merged, Counters& counters);

  /// One system call. `take(from, bytes)` gets each datagram; bytes stay until the next call of receive().
  template <typename Take>
  void receive(int fd, Take&& take) {
    const unsigned count = fill(fd);
    for (unsigned i = 0; i < count; ++i) split(i, take);
  }

 private:
  struct alignas(cmsghdr) AncillaryData {
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  };

  /// How many slots have something now. An error of the socket is one of a peer's network, and that peer's alone (ICMP
  /// is not even reported: ip(7), IP_RECVERR); to read it clears it.
  unsigned fill(int fd);
  void prepare(mmsghdr& header, AncillaryData& control) const;
  /// The length of each datagram in slot `i` (but the last, which may be shorter); 0 when there is but one.
  std::size_t segment_size(unsigned i) const;

  template <typename Take>
  void split(unsigned i, Take& take) {
    std::string_view bytes{static_cast<const char*>(parts_[i].iov_base), headers_[i].msg_len};
    const bool cut_off = (headers_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    const std::size_t segment = segment_size(i) == 0 ? bytes.size() : segment_size(i);
    do {  // also for a datagram of no bytes
      const std::string_view datagram = bytes.substr(0, segment);
      if (cut_off || datagram.size() > longest_) {
        counters_.add_oversized();
      } else {
        take(senders_[i], datagram);
      }
      bytes.remove_prefix(datagram.size());
    } while (!bytes.empty());
  }

  const std::size_t longest_;
  const bool merged_;
  Counters& counters_;
  const std::unique_ptr<char[]> buffers_;  // its pages cost memory only once something was received into them
  std::array<Address, batch> senders_;
  std::array<iovec, batch> parts_;
  std::array<AncillaryData, batch> controls_;
  std::array<mmsghdr, batch> headers_{};
  unsigned used_ = batch;  // headers that are not as they must be for the next call
};

}  // namespace netdyno
