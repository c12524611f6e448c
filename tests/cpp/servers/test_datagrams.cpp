// Sending and receiving many datagrams at a time: against a made-up socket, and against the kernel's own on loopback.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "servers/_shared/datagram/client.hpp"
#include "servers/_shared/datagram/receiver.hpp"
#include "servers/_shared/datagram/sender.hpp"
#include "servers/_shared/datagram/socket.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Address address(std::uint16_t port) {
  Address made;
  auto& ipv4 = *reinterpret_cast<sockaddr_in*>(made.data());
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return made;
}

std::uint16_t port_of(const sockaddr_in& ipv4) { return ntohs(ipv4.sin_port); }

struct Sent {
  std::uint16_t port;
  std::string bytes;
  friend bool operator==(const Sent&, const Sent&) = default;
};
void PrintTo(const Sent& sent, std::ostream* out) { *out << sent.port << ": " << sent.bytes; }

/// A socket that takes as much as the test sets, and refuses what the test sets.
class FakeSocket {
 public:
  /// sendmmsg(2).
  int send(mmsghdr* headers, unsigned count) {
    ++calls;
    unsigned done = 0;
    for (; done < count; ++done) {
      const int error = why_not(headers[done].msg_hdr);
      if (error != 0 && done == 0) {
        errno = error;
        return -1;
      }
      if (error != 0) break;
      accept(headers[done].msg_hdr);
    }
    return static_cast<int>(done);
  }

  static std::size_t segment(const msghdr& header) {
    if (header.msg_controllen == 0) return 0;
    std::uint16_t size = 0;
    std::memcpy(&size, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof size);
    return size;
  }

  std::size_t room = SIZE_MAX;        // pieces that it takes before it says EAGAIN
  std::vector<std::uint16_t> no_way;  // ports that nothing can be sent to
  std::vector<std::uint16_t> narrow;  // ports that nothing can be sent to in one piece
  int interruptions = 0;
  std::vector<Sent> sent;
  std::vector<std::size_t> pieces;  // how many datagrams each piece was
  int calls = 0;

 private:
  int why_not(const msghdr& header) {
    const std::uint16_t port = port_of(*static_cast<const sockaddr_in*>(header.msg_name));
    if (interruptions > 0) return --interruptions, EINTR;
    if (room == 0) return EAGAIN;
    if (std::ranges::count(no_way, port) > 0) return ENETUNREACH;
    return segment(header) > 0 && std::ranges::count(narrow, port) > 0 ? EINVAL : 0;
  }

  void accept(const msghdr& header) {
    --room;
    const std::uint16_t port = port_of(*static_cast<const sockaddr_in*>(header.msg_name));
    std::string_view bytes{static_cast<const char*>(header.msg_iov->iov_base), header.msg_iov->iov_len};
    const std::size_t size = segment(header) > 0 ? segment(header) : bytes.size();
    pieces.push_back(0);
    do {
      sent.push_back({port, std::string{bytes.substr(0, size)}});
      bytes.remove_prefix(std::min(size, bytes.size()));
      ++pieces.back();
    } while (!bytes.empty());
  }
};

class SenderTest : public testing::Test {
 protected:
  Sender make(bool cut = true, std::size_t limit = 1 << 20, DeliveryMode deliveries = DeliveryMode::joined) {
    return Sender{[this](mmsghdr* headers, unsigned count) { return socket.send(headers, count); }, cut, deliveries,
                  limit, counters};
  }

  FakeSocket socket;
  Counters counters;
};

TEST_F(SenderTest, SendsNothingBeforeTheFlushAndThenAllInOneCall) {
  Sender sender = make();
  for (std::uint16_t port = 1; port <= 64; ++port) sender.push_copy(address(port), "text");
  EXPECT_THAT(socket.sent, IsEmpty());
  sender.flush();
  EXPECT_THAT(socket.sent, SizeIs(64));
  EXPECT_EQ(socket.calls, 1);
  EXPECT_EQ(counters.totals().bytes_out, 64u * 4);
}

TEST_F(SenderTest, WhatFollowsToOneAddressIsOnePiece) {
  Sender sender = make();
  for (const std::string_view text : {"aaa", "bbb", "c"}) sender.push_copy(address(1), text);
  sender.push_copy(address(1), "ddd");  // after a shorter one nothing more can join
  sender.push_copy(address(2), "eee");
  sender.push_copy(address(2), "ffff");  // a longer one cannot join
  sender.flush();
  EXPECT_THAT(socket.pieces, ElementsAre(3, 1, 1, 1));
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "aaa"}, Sent{1, "bbb"}, Sent{1, "c"}, Sent{1, "ddd"}, Sent{2, "eee"},
                                       Sent{2, "ffff"}));
}

TEST_F(SenderTest, WhatIsKeptOnceCanBeSentToManyInOnePieceEach) {
  Sender sender = make();
  const std::string_view first = sender.keep("one");
  const std::string_view second = sender.keep("two");
  for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{2}})
    for (const std::string_view text : {first, second}) sender.push(address(port), text);
  sender.flush();
  EXPECT_THAT(socket.pieces, ElementsAre(2, 2));
}

TEST_F(SenderTest, NothingIsMergedWhereTheKernelCannotCut) {
  Sender sender = make(false);
  for (int i = 0; i < 3; ++i) sender.push_copy(address(1), "text");
  sender.flush();
  EXPECT_THAT(socket.pieces, ElementsAre(1, 1, 1));
}

TEST_F(SenderTest, EachDatagramTakesACallOfItsOwnWhereDeliveriesAreSingle) {
  Sender sender = make(true, 1 << 20, DeliveryMode::single);
  for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{2}})
    for (int i = 0; i < 3; ++i) sender.push_copy(address(port), "text");
  sender.flush();
  EXPECT_THAT(socket.pieces, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_EQ(socket.calls, 6);
}

TEST_F(SenderTest, AWayThatIsTooNarrowForOnePieceGetsThemOneByOne) {
  socket.narrow = {1};
  Sender sender = make();
  for (int i = 0; i < 3; ++i) sender.push_copy(address(1), "text");
  for (int i = 0; i < 2; ++i) sender.push_copy(address(2), "text");
  sender.flush();
  EXPECT_THAT(socket.sent, SizeIs(5));
  EXPECT_EQ(counters.totals().send_dropped, 0u);
  socket.pieces.clear();
  for (int i = 0; i < 2; ++i) sender.push_copy(address(2), "text");
  sender.flush();
  EXPECT_THAT(socket.pieces, ElementsAre(2));  // the others are not slower for it from then on
}

TEST_F(SenderTest, WhatCannotBeSentIsDroppedAndCountedAndTheRestIsSent) {
  socket.no_way = {2};
  Sender sender = make();
  for (std::uint16_t port = 1; port <= 3; ++port)
    for (int i = 0; i < 2; ++i) sender.push_copy(address(port), "text");
  sender.flush();
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "text"}, Sent{1, "text"}, Sent{3, "text"}, Sent{3, "text"}));
  EXPECT_EQ(counters.totals().send_dropped, 2u);
  EXPECT_FALSE(sender.waiting());
}

TEST_F(SenderTest, AnInterruptionIsNoLoss) {
  socket.interruptions = 3;
  Sender sender = make();
  sender.push_copy(address(1), "text");
  sender.flush();
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "text"}));
}

TEST_F(SenderTest, WhatTheSocketDoesNotTakeWaitsInOrder) {
  socket.room = 1;
  Sender sender = make();
  sender.push_copy(address(1), "one");
  sender.push_copy(address(2), "two");
  sender.flush();
  EXPECT_TRUE(sender.waiting());
  sender.push_copy(address(3), "three");
  sender.flush();
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "one"}));
  socket.room = SIZE_MAX;
  sender.push_copy(address(4), "four");
  sender.flush();
  EXPECT_FALSE(sender.waiting());
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "one"}, Sent{2, "two"}, Sent{3, "three"}, Sent{4, "four"}));
}

TEST_F(SenderTest, WhatWaitsIsBoundedAndWhatIsMoreIsDroppedAndCounted) {
  constexpr std::size_t limit = 10'000;
  socket.room = 0;
  Sender sender = make(true, limit);
  const std::string text(100, 'x');
  for (int i = 0; i < 5000; ++i) sender.push_copy(address(1), text);
  sender.flush();
  const std::size_t dropped = counters.totals().send_dropped;
  EXPECT_GT(dropped, 5000 - limit / text.size());
  EXPECT_LT(dropped, 5000u);
  socket.room = SIZE_MAX;
  sender.flush();
  EXPECT_EQ(socket.sent.size() + dropped, 5000u);
}

TEST_F(SenderTest, OneMessageMayAlwaysWait) {
  socket.room = 0;
  Sender sender = make(true, 1);
  sender.push_copy(address(1), "text");
  sender.push_copy(address(1), "more");
  sender.flush();
  EXPECT_EQ(counters.totals().send_dropped, 1u);
  socket.room = 1;
  sender.flush();
  EXPECT_THAT(socket.sent, ElementsAre(Sent{1, "text"}));
}

TEST_F(SenderTest, ControlMessagesAreNoBytesOfMessages) {
  Sender sender = make();
  sender.push(address(1), encode_control({ControlKind::welcome, 1}));
  sender.flush();
  EXPECT_THAT(socket.sent, SizeIs(1));
  EXPECT_EQ(counters.totals().bytes_out, 0u);
}

PROPERTY(SenderProperties, WhateverTheSocketDoesAllIsSentInOrderOrCounted) {
  FakeSocket socket;
  Counters counters;
  const bool cut = draw::any<bool>();
  const auto deliveries = draw::one_of({DeliveryMode::joined, DeliveryMode::single});
  Sender sender{[&](mmsghdr* headers, unsigned count) { return socket.send(headers, count); }, cut, deliveries,
                draw::between<std::size_t>(1, 2000), counters};
  socket.narrow = draw::several<std::uint16_t>(1, 4);
  socket.no_way = draw::several<std::uint16_t>(3, 5);
  std::vector<Sent> pushed;
  for (const int act : draw::several(0, 10)) {
    if (act == 0) {
      socket.room = draw::between<std::size_t>(0, 5);
    } else if (act == 1) {
      sender.flush();
    } else {
      const auto port = draw::between<std::uint16_t>(1, 5);
      const auto size = draw::between<std::size_t>(1, 4);
      pushed.push_back({port, std::to_string(pushed.size()) + std::string(size, 'x')});
      sender.push_copy(address(port), pushed.back().bytes);
    }
  }
  socket.room = SIZE_MAX;
  sender.flush();
  RC_ASSERT(!sender.waiting());
  auto next = pushed.begin();
  std::size_t skipped = 0;
  for (const Sent& sent : socket.sent) {
    for (; next != pushed.end() && !(*next == sent); ++next) ++skipped;
    RC_ASSERT(next != pushed.end());
    ++next;
  }
  skipped += static_cast<std::size_t>(pushed.end() - next);
  RC_ASSERT(skipped == counters.totals().send_dropped);
}

/// Two sockets on loopback.
class LoopbackTest : public testing::Test {
 protected:
  static std::string endpoint(int fd) { return format_url(local_endpoint(fd, "udp")); }

  Address address_of(const UniqueFd& fd) {
    Address found;
    socklen_t size = Address::capacity;
    EXPECT_EQ(getsockname(fd.get(), found.data(), &size), 0);
    return found;
  }

  /// Waits until something has arrived, and receives what has.
  std::vector<std::string> receive(Receiver& receiver, const UniqueFd& fd) {
    pollfd readable{fd.get(), POLLIN, 0};
    poll(&readable, 1, 60'000);
    std::vector<std::string> received;
    const Address from = address_of(near);
    receiver.receive(fd.get(), [&](const Address& sender, std::string_view bytes) {
      EXPECT_TRUE(sender == from);
      received.emplace_back(bytes);
    });
    return received;
  }

  void send(std::string_view bytes) {
    const Address to = address_of(far);
    EXPECT_EQ(sendto(near.get(), bytes.data(), bytes.size(), 0, to.data(), to.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  Counters counters;
  UniqueFd near = bind_udp({});
  UniqueFd far = bind_udp({});
};

TEST_F(LoopbackTest, ManyDatagramsComeWithOneCallAndEachIsWhole) {
  Receiver receiver{100, false, counters};
  for (const std::string_view bytes : {"one", "", "three"}) send(bytes);
  EXPECT_THAT(receive(receiver, far), ElementsAre("one", "", "three"));
}

TEST_F(LoopbackTest, WhatIsTooLongIsDroppedAndCounted) {
  for (const bool merged : {false, true}) {
    ASSERT_TRUE(!merged || merge_arrivals(far.get()));
    Receiver receiver{100, merged, counters};
    send(std::string(100, 'x'));
    send(std::string(101, 'x'));
    send("after");
    EXPECT_THAT(receive(receiver, far), ElementsAre(std::string(100, 'x'), "after"));
  }
  EXPECT_EQ(counters.totals().oversized, 2u);
}

TEST_F(LoopbackTest, TheLongestDatagramIsReceivedWhole) {
  ServerOptions options;
  Receiver receiver{longest_datagram(options), true, counters};
  send(std::string(max_datagram, 'x'));
  EXPECT_THAT(receive(receiver, far), ElementsAre(std::string(max_datagram, 'x')));
}

TEST_F(LoopbackTest, OnePieceArrivesAsTheDatagramsThatWerePushed) {
  for (const bool merged : {false, true}) {
    ASSERT_TRUE(!merged || merge_arrivals(far.get()));
    Receiver receiver{100, merged, counters};
    Sender sender{Sender::to_socket(near.get()), Sender::can_cut(near.get()), DeliveryMode::joined, 1 << 20, counters};
    const Address to = address_of(far);
    for (const std::string_view text : {"one", "two", "3"}) sender.push_copy(to, text);
    sender.flush();
    EXPECT_THAT(receive(receiver, far), ElementsAre("one", "two", "3")) << (merged ? "merged" : "one by one");
  }
  EXPECT_EQ(counters.totals().send_dropped, 0u);
}

TEST_F(LoopbackTest, APeerThatIsGoneDisturbsNobody) {
  Sender sender{Sender::to_socket(near.get()), Sender::can_cut(near.get()), DeliveryMode::joined, 1 << 20, counters};
  const Address gone = address_of(bind_udp({}));  // no socket has that port any more: ICMP reports it later
  const Address to = address_of(far);
  for (int i = 0; i < 20; ++i) {
    sender.push_copy(gone, "text");
    sender.push_copy(to, "text");
    sender.flush();
  }
  Receiver receiver{100, false, counters};
  EXPECT_THAT(receive(receiver, far), SizeIs(20));
  EXPECT_EQ(counters.totals().send_dropped, 0u);
}

TEST_F(LoopbackTest, WhatTheKernelRefusesIsDroppedAloneAndCounted) {
  Sender sender{Sender::to_socket(near.get()), Sender::can_cut(near.get()), DeliveryMode::joined, 1 << 20, counters};
  const Address nowhere = address(0);  // no datagram can be sent to port 0
  const Address to = address_of(far);
  for (const Address& recipient : {to, nowhere, nowhere, to}) sender.push_copy(recipient, "text");
  sender.flush();
  Receiver receiver{100, false, counters};
  EXPECT_THAT(receive(receiver, far), ElementsAre("text", "text"));
  EXPECT_EQ(counters.totals().send_dropped, 2u);
}

TEST_F(LoopbackTest, AfterTheEndOfArrivalsOnlyWhatHasArrivedIsReceived) {
  Receiver receiver{100, false, counters};
  send("before");
  EXPECT_TRUE(has_arrivals(far.get()));
  stop_arrivals(far.get());
  send("after");
  EXPECT_THAT(receive(receiver, far), ElementsAre("before"));
  EXPECT_FALSE(has_arrivals(far.get()));
}

TEST_F(LoopbackTest, SocketsBesideOneAnotherShareItsPortAndEachClientKeepsToOne) {
  std::vector<UniqueFd> group;
  group.push_back(std::move(far));
  for (int i = 0; i < 3; ++i) group.push_back(bind_udp_on_port_of(group.front(), {}));
  const Address to = address_of(group.front());
  for (const UniqueFd& fd : group) EXPECT_TRUE(address_of(fd) == to);
  std::vector<std::vector<std::uint16_t>> heard(group.size());
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 64; ++i) clients.push_back(bind_udp({}));
  for (int round = 0; round < 2; ++round)
    for (const UniqueFd& client : clients) sendto(client.get(), "x", 1, 0, to.data(), to.size());
  Receiver receiver{100, false, counters};
  for (std::size_t i = 0; i < group.size(); ++i)
    while (has_arrivals(group[i].get()))
      receiver.receive(group[i].get(), [&](const Address& from, std::string_view) {
        heard[i].push_back(port_of(*reinterpret_cast<const sockaddr_in*>(from.data())));
      });
  std::size_t all = 0;
  for (auto& ports : heard) {
    for (const std::uint16_t port : ports) EXPECT_EQ(std::ranges::count(ports, port), 2);
    EXPECT_THAT(ports, testing::Not(IsEmpty()));  // 64 clients: all in three of four once in 10^8 times
    all += ports.size();
  }
  EXPECT_EQ(all, 2 * clients.size());
}

TEST(BindUdp, AGroupIsClosedToOtherPrograms) {
  const auto bind_it = [](const UniqueFd& taken) {
    ServerOptions options;
    options.listen = local_endpoint(taken.get(), "udp");
    bind_udp(options);
  };
  const UniqueFd first = bind_udp({});
  EXPECT_EXIT(bind_it(first), testing::ExitedWithCode(1), "port 0");
  const UniqueFd second = bind_udp_on_port_of(first, {});
  EXPECT_EXIT(bind_it(first), testing::ExitedWithCode(1), "port 0");
}

TEST(BindUdp, ASocketBufferIsAsAskedOrRefused) {
  ServerOptions options;
  options.socket_buffer = 100'000;
  const UniqueFd fd = bind_udp(options);
  for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
    int value = 0;
    socklen_t size = sizeof value;
    ASSERT_EQ(getsockopt(fd.get(), SOL_SOCKET, name, &value, &size), 0);
    EXPECT_EQ(value, 200'000);  // socket(7): the kernel doubles it
  }
}

/// A client that is never served: what comes waits.
struct BusyClient final : DatagramClient<Coroutine> {
  using DatagramClient::DatagramClient;
};

TEST(DatagramClient, WhatWaitsIsBoundedForAllTogether) {
  ServerOptions options;
  Counters counters;
  Loop<Coroutine> loop;
  PeerRoom room{2, 1000};
  auto first = std::make_unique<BusyClient>(address(1), room.take(), loop, options, counters);
  BusyClient second{address(2), room.take(), loop, options, counters};
  const std::string message(200, 'x');
  for (int i = 0; i < 10; ++i) first->deliver(message);
  const auto dropped = counters.totals().receive_dropped;
  EXPECT_GE(dropped, 6U);
  second.deliver(message);
  EXPECT_EQ(counters.totals().receive_dropped, dropped + 1);
  first.reset();
  second.deliver(message);
  EXPECT_EQ(counters.totals().receive_dropped, dropped + 1);
}

}  // namespace
}  // namespace netdyno
