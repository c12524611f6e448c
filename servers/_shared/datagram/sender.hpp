#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/datagram/address.hpp"
#include "lib/protocol/handshake.hpp"
#include "lib/protocol/workload.hpp"
#include "lib/server/fifo.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// Sends from a UDP socket, many datagrams with one system call, and those that follow one another to the
/// same address in one piece where the kernel can cut it (UDP_SEGMENT, udp(7), Linux 4.18). With deliveries single,
/// each datagram takes a system call of its own. One thread.
///
/// What the socket does not take waits, up to a limit; what is more, or cannot be sent at all, is dropped and counted.
class Sender {
 public:
  /// sendmmsg(2) on the socket.
  using Send = std::function<int(mmsghdr* headers, unsigned count)>;
  static Send to_socket(int fd);
  /// Whether the kernel can cut one piece into several datagrams.
  static bool can_cut(int fd);

  Sender(Send send, bool cut, DeliveryMode deliveries, std::size_t limit, Counters& counters)
      : send_(std::move(send)),
        cut_(cut && deliveries == DeliveryMode::joined),
        max_in_a_call_(deliveries == DeliveryMode::joined ? batch : 1),
        limit_(limit),
        counters_(counters) {}

  /// A copy that stays until the flush(). What is kept one after the other lies one after the other, which helps.
  std::string_view keep(std::string_view bytes);

  /// Queues a message; its bytes must stay until the flush().
  void push(const Address& to, std::string_view kept) { push({to, kept, true}); }
  /// Queues a copy.
  void push_copy(const Address& to, std::string_view bytes) { push(to, keep(bytes)); }
  /// Queues a control message, which does not count as bytes sent.
  void push(const Address& to, const ControlBytes& control) {
    push({to, keep({control.data(), control.size()}), false});
  }

  /// Sends what is queued, and copies what must wait. To be called at the end of each turn, and when the socket takes
  /// something again.
  void flush();

  /// Something waits for the socket.
  bool waiting() const { return !waiting_.empty(); }

 private:
  struct Item {
    Address to;
    std::string_view bytes;
    bool is_message;
  };
  struct WaitingItem {
    Address to;
    std::string bytes;
    bool is_message;
  };
  /// As many datagrams, or pieces that are cut into several, as one system call takes here.
  static constexpr std::size_t batch = 64;
  /// So much is queued before it is sent in mid-turn: what a broadcast adds up to needs no memory of its size.
  static constexpr std::size_t most_queued = 1024;

  void push(const Item& item);
  void send_queued();
  void send_waiting();
  void let_wait(const Item& item);
  /// Sends from the front on, until all is sent (or cannot be), or the socket takes no more. How many are done.
  std::size_t send_some(std::span<const Item> items);
  std::size_t fill_headers(std::span<const Item> items);
  std::size_t mergeable(std::span<const Item> items) const;
  void note_taken(std::span<const Item> items);
  std::size_t waiting_size(std::size_t bytes) const { return bytes + sizeof(WaitingItem); }

  const Send send_;
  const bool cut_;
  const std::size_t max_in_a_call_;
  const std::size_t limit_;
  Counters& counters_;

  static constexpr std::size_t first_block_size = 256 << 10;
  const std::unique_ptr<std::byte[]> first_block_ = std::make_unique_for_overwrite<std::byte[]>(first_block_size);
  std::pmr::monotonic_buffer_resource kept_{first_block_.get(), first_block_size};
  std::vector<Item> items_;
  Fifo<WaitingItem> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::size_t unmerged_ = 0;  // so many at the front were refused in one piece, and are sent one by one

  struct alignas(cmsghdr) AncillaryData {
    std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
  };
  std::array<mmsghdr, batch> headers_;
  std::array<iovec, batch> parts_;
  std::array<AncillaryData, batch> controls_;
  std::array<std::size_t, batch> merged_;  // how many items each header stands for
};

}  // namespace netdyno
