#include "lib/server/send_backlog.hpp"

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
  bool push() { return backlog.push(outbox, frame, own.get()); }
  /// Nothing more goes into its socket.
  void read_no_more() {
    const std::string bytes(1 << 16, 'x');
    while (send(own.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  }

  SharedFrame frame = std::make_shared<const Frame>(Frame{std::string(1000 - frame_overhead, 'x'), 4});
  UniqueFd own, peer;
  Outbox<std::string_view> outbox{WriteMode::gathered, DeliveryMode::joined, 2000};
  SendBacklog backlog{2000};
};

TEST(SendBacklog, AreThereWhereMuchWaitsForAReaderWhoReads) {
  Reader reader;
  EXPECT_TRUE(reader.push());
  EXPECT_FALSE(reader.backlog.any());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(reader.push()) << "beyond the limit, for it reads";
  EXPECT_TRUE(reader.backlog.any());
  reader.backlog.check(reader.outbox, -1);
  EXPECT_FALSE(reader.backlog.any()) << "it is gone";
}

TEST(SendBacklog, AreNotOfAReaderWhoDoesNotRead) {
  Reader reader;
  reader.read_no_more();
  EXPECT_TRUE(reader.push());
  EXPECT_TRUE(reader.push());
  EXPECT_FALSE(reader.backlog.any());
  EXPECT_FALSE(reader.push());
}

TEST(SendBacklog, CountWhatIsOnItsWay) {
  Reader reader;
  reader.backlog.note_posted(*reader.frame);
  EXPECT_FALSE(reader.backlog.any());
  reader.backlog.note_posted(*reader.frame);
  EXPECT_TRUE(reader.backlog.any());
  reader.backlog.note_arrived(*reader.frame);
  EXPECT_FALSE(reader.backlog.any());
}

}  // namespace
}  // namespace netdyno
