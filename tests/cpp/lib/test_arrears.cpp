#include "lib/server/arrears.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "lib/net/descriptor.hpp"

namespace netdyno {
namespace {

/// A reader, whose frames count 1000 each, of which two may wait.
struct Reader {
  Reader() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    own = UniqueFd{ends[0]};
    peer = UniqueFd{ends[1]};
  }
  bool push() { return arrears.push(outbox, frame, own.get()); }
  /// Nothing more goes into its socket.
  void read_no_more() {
    const std::string bytes(1 << 16, 'x');
    while (send(own.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  }

  SharedFrame frame = std::make_shared<const Frame>(Frame{std::string(1000 - frame_overhead, 'x'), 4});
  UniqueFd own, peer;
  Outbox<std::string_view> outbox{WriteMode::gathered, DeliveryMode::joined, 2000};
  Arrears arrears{2000};
};

TEST(Arrears, AreThereWhereMuchWaitsForAReaderWhoReads) {
  Reader reader;
  EXPECT_TRUE(reader.push());
  EXPECT_FALSE(reader.arrears.any());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(reader.push()) << "beyond the limit, for it reads";
  EXPECT_TRUE(reader.arrears.any());
  reader.arrears.look(reader.outbox, -1);
  EXPECT_FALSE(reader.arrears.any()) << "it is gone";
}

TEST(Arrears, AreNotOfAReaderWhoDoesNotRead) {
  Reader reader;
  reader.read_no_more();
  EXPECT_TRUE(reader.push());
  EXPECT_TRUE(reader.push());
  EXPECT_FALSE(reader.arrears.any());
  EXPECT_FALSE(reader.push());
}

TEST(Arrears, CountWhatIsOnItsWay) {
  Reader reader;
  reader.arrears.sent_off(*reader.frame);
  EXPECT_FALSE(reader.arrears.any());
  reader.arrears.sent_off(*reader.frame);
  EXPECT_TRUE(reader.arrears.any());
  reader.arrears.arrived(*reader.frame);
  EXPECT_FALSE(reader.arrears.any());
}

}  // namespace
}  // namespace netdyno
