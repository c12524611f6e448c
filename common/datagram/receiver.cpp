#include "common/datagram/receiver.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cstring>

namespace netdyno {
namespace {

/// More than any datagram, and than what the kernel merges into one (IPv4 and IPv6 count a packet's length in 16 bits).
constexpr std::size_t most_merged = 1 << 16;

}  // namespace

Receiver::Receiver(std::size_t longest, bool merged, Counters& counters)
    : longest_(longest),
      merged_(merged),
      counters_(counters),
      slot_size_(merged ? most_merged : longest),
      buffers_(std::make_unique_for_overwrite<char[]>(slot_size_ * batch)) {}

unsigned Receiver::fill(int fd) {
  for (unsigned i = 0; i < batch; ++i) {
    parts_[i] = {buffers_.get() + i * slot_size_, slot_size_};
    msghdr& header = headers_[i].msg_hdr;
    header = {};
    header.msg_name = senders_[i].data();
    header.msg_namelen = Address::capacity;
    header.msg_iov = &parts_[i];
    header.msg_iovlen = 1;
    if (!merged_) continue;
    header.msg_control = controls_[i].bytes.data();
    header.msg_controllen = controls_[i].bytes.size();
  }
  const int count = recvmmsg(fd, headers_.data(), batch, MSG_DONTWAIT, nullptr);
  return count > 0 ? static_cast<unsigned>(count) : 0;
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
