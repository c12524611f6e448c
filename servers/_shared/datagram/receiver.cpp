#include "servers/_shared/datagram/receiver.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cstring>

namespace netdyno {
namespace {

/// More than any datagram, and than what the kernel merges into one (IPv4 and IPv6 count a packet's length in 16 bits).
constexpr std::size_t most_merged = 1 << 16;

/// How far apart two buffers of `size` bytes are: an odd number of cache lines. At a power of two all of them would
/// have their first bytes, which is all that short datagrams have, in the same set of the cache.
std::size_t distance(std::size_t size) {
  constexpr std::size_t line = 64;
  return ((size + line - 1) / line | 1) * line;
}

}  // namespace

Receiver::Receiver(std::size_t longest, bool merged, Counters& counters)
    : longest_(longest),
      merged_(merged),
      counters_(counters),
      buffers_(std::make_unique_for_overwrite<char[]>(distance(merged ? most_merged : longest) * batch)) {
  const std::size_t size = merged ? most_merged : longest;
  for (unsigned i = 0; i < batch; ++i) {
    parts_[i] = {buffers_.get() + i * distance(size), size};
    headers_[i].msg_hdr.msg_name = senders_[i].data();
    headers_[i].msg_hdr.msg_iov = &parts_[i];
    headers_[i].msg_hdr.msg_iovlen = 1;
  }
}

/// Resets what the kernel wrote to when it filled the slot (recvmsg(2)).
void Receiver::prepare(mmsghdr& header, AncillaryData& control) const {
  header.msg_hdr.msg_namelen = Address::capacity;
  header.msg_hdr.msg_flags = 0;
  if (!merged_) return;
  header.msg_hdr.msg_control = control.bytes.data();
  header.msg_hdr.msg_controllen = control.bytes.size();
}

unsigned Receiver::fill(int fd) {
  for (unsigned i = 0; i < used_; ++i) prepare(headers_[i], controls_[i]);
  const int count = recvmmsg(fd, headers_.data(), batch, MSG_DONTWAIT, nullptr);
  used_ = count > 0 ? static_cast<unsigned>(count) : 0;
  return used_;
}

std::size_t Receiver::segment_size(unsigned i) const {
  if (!merged_) return 0;
  auto header = headers_[i].msg_hdr;
  for (const cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level != IPPROTO_UDP || part->cmsg_type != UDP_GRO) continue;
    int size = 0;
    std::memcpy(&size, CMSG_DATA(part), sizeof size);
    return static_cast<std::size_t>(size);
  }
  return 0;
}

}  // namespace netdyno
