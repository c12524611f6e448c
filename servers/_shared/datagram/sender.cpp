#include "servers/_shared/datagram/sender.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace netdyno {
namespace {

/// UDP_MAX_SEGMENTS of Linux 4.18 to 6.8 (later ones have 128).
constexpr std::size_t most_segments = 64;

}  // namespace

Sender::Send Sender::to_socket(int fd) {
  return [fd](mmsghdr* headers, unsigned count) { return sendmmsg(fd, headers, count, MSG_DONTWAIT | MSG_NOSIGNAL); };
}

bool Sender::can_cut(int fd) {
  int size = 0;
  socklen_t length = sizeof size;
  return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0;
}

std::string_view Sender::keep(std::string_view bytes) {
  auto* const copy = static_cast<char*>(kept_.allocate(bytes.size(), 1));
  std::ranges::copy(bytes, copy);
  return {copy, bytes.size()};
}

void Sender::push(const Item& item) {
  items_.push_back(item);
  if (items_.size() == most_queued) send_queued();
}

void Sender::flush() {
  send_waiting();
  send_queued();
  kept_.release();
}

void Sender::send_queued() {
  const std::size_t sent = waiting_.empty() ? send_some(items_) : 0;
  for (const Item& item : std::span{items_}.subspan(sent)) let_wait(item);
  items_.clear();
}

void Sender::let_wait(const Item& item) {
  const std::size_t size = waiting_size(item.bytes.size());
  if (!waiting_.empty() && (size > limit_ || waiting_bytes_ > limit_ - size)) return counters_.add_send_dropped();
  waiting_bytes_ += size;
  waiting_.push({item.to, std::string{item.bytes}, item.is_message});
}

void Sender::send_waiting() {
  std::vector<Item> front;
  while (!waiting_.empty()) {
    front.clear();
    for (std::size_t i = 0; i < std::min(batch, waiting_.size()); ++i)
      front.push_back({waiting_[i].to, waiting_[i].bytes, waiting_[i].is_message});
    const std::size_t sent = send_some(front);
    for (std::size_t i = 0; i < sent; ++i) waiting_bytes_ -= waiting_size(waiting_.pop().bytes.size());
    if (sent < front.size()) return;
  }
}

std::size_t Sender::send_some(std::span<const Item> items) {
  std::size_t done = 0;
  while (done < items.size()) {
    const std::size_t count = fill_headers(items.subspan(done));
    const int sent = send_(headers_.data(), static_cast<unsigned>(count));
    for (int i = 0; i < sent; ++i) {
      const std::size_t taken = merged_[static_cast<std::size_t>(i)];
      note_taken(items.subspan(done, taken));
      done += taken;
    }
    if (sent >= 0 || errno == EINTR) continue;
    if (errno == EAGAIN) break;
    if (merged_[0] > 1) {  // not in one piece: the way there is too narrow, or the device cannot cut (udp(7))
      unmerged_ = merged_[0];
    } else {  // not at all, as there is no way to that address, or none that is allowed: that peer's trouble alone
      counters_.add_send_dropped();
      unmerged_ -= std::min<std::size_t>(unmerged_, 1);
      ++done;
    }
  }
  return done;
}

void Sender::note_taken(std::span<const Item> items) {
  for (const Item& item : items)
    if (item.is_message) counters_.add_bytes_out(item.bytes.size());
  unmerged_ -= std::min(unmerged_, items.size());
}

/// How many from the front on can be sent in one piece: to one address, lying one after the other, all of one length
/// but for the last, which may be shorter (udp(7)).
std::size_t Sender::mergeable(std::span<const Item> items) const {
  const Item& first = items.front();
  if (!cut_ || unmerged_ > 0 || first.bytes.empty()) return 1;
  const std::size_t most = std::min({items.size(), most_segments, max_datagram / first.bytes.size()});
  std::size_t count = 1;
  for (; count < most; ++count) {
    const Item& last = items[count - 1];
    const Item& next = items[count];
    const bool follows = next.bytes.data() == last.bytes.data() + last.bytes.size();
    if (!follows || last.bytes.size() < first.bytes.size() || next.bytes.size() > first.bytes.size() ||
        !(next.to == first.to))
      break;
  }
  return count;
}

std::size_t Sender::fill_headers(std::span<const Item> items) {
  std::size_t count = 0;
  for (; count < max_in_a_call_ && !items.empty(); ++count) {
    const std::size_t together = mergeable(items);
    const Item& first = items.front();
    const Item& last = items[together - 1];
    const auto size = static_cast<std::size_t>(last.bytes.data() + last.bytes.size() - first.bytes.data());
    parts_[count] = {const_cast<char*>(first.bytes.data()), size};
    merged_[count] = together;
    msghdr& header = headers_[count].msg_hdr;
    header = {};
    header.msg_name = const_cast<sockaddr*>(first.to.data());
    header.msg_namelen = first.to.size();
    header.msg_iov = &parts_[count];
    header.msg_iovlen = 1;
    if (together > 1) {
      const auto segment = static_cast<std::uint16_t>(first.bytes.size());
      header.msg_control = controls_[count].bytes.data();
      header.msg_controllen = controls_[count].bytes.size();
      cmsghdr* const cut = CMSG_FIRSTHDR(&header);
      cut->cmsg_level = IPPROTO_UDP;
      cut->cmsg_type = UDP_SEGMENT;
      cut->cmsg_len = CMSG_LEN(sizeof segment);
      std::memcpy(CMSG_DATA(cut), &segment, sizeof segment);
    }
    items = items.subspan(together);
  }
  return count;
}

}  // namespace netdyno
