#include "lib/server/blocking_client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>

#include "lib/server/lifecycle.hpp"

namespace netdyno {
namespace {

/// A client whose server this thread is.
class BlockingClients : public testing::Test {
 protected:
  BlockingClients() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    server_end_ = UniqueFd{ends[0]};
    client_end_ = UniqueFd{ends[1]};
  }

  std::string receive() {
    std::array<char, 100> buffer{};
    const ssize_t size = recv(server_end_.get(), buffer.data(), buffer.size(), 0);
    return size < 0 ? "error" : std::string(buffer.data(), static_cast<std::size_t>(size));
  }
  void say(const std::string& text) { EXPECT_EQ(send_all(client_end_.get(), text), SendResult::sent); }
  bool is_stopped() const {
    pollfd watched{stop_.get(), POLLIN, 0};
    return poll(&watched, 1, 0) > 0;
  }
  void take_signal() const {
    std::array<char, 1000> scrap{};
    EXPECT_GT(read(stop_.get(), scrap.data(), scrap.size()), 0);
  }

  const UniqueFd stop_ = termination_signals();
  UniqueFd server_end_, client_end_;
};

TEST_F(BlockingClients, AreReadToTheEndOfWhatHasArrivedAfterASignal) {
  {
    const BlockingClient client{server_end_.get()};
    say("arrived");
    std::raise(SIGTERM);
    EXPECT_EQ(receive(), "arrived");
    EXPECT_EQ(receive(), "");
    EXPECT_EQ(send_all(server_end_.get(), "reply"), SendResult::sent);
    EXPECT_FALSE(BlockingClient::grace_over());
    EXPECT_FALSE(is_stopped());
  }
  EXPECT_TRUE(is_stopped()) << "the signal is lost";
  take_signal();
}

TEST_F(BlockingClients, OfASignalThatCameBeforeAreReadToo) {
  std::raise(SIGINT);
  EXPECT_TRUE(is_stopped());
  {
    const BlockingClient client{server_end_.get()};
    EXPECT_EQ(receive(), "");
  }
  EXPECT_TRUE(is_stopped());
  take_signal();
}

TEST_F(BlockingClients, AreGivenUpWhenTheGraceIsOver) {
  {
    const BlockingClient client{server_end_.get()};
    std::raise(SIGTERM);
    std::raise(SIGALRM);
    EXPECT_TRUE(BlockingClient::grace_over());
    EXPECT_FALSE(wait_unless_reset(server_end_.get(), std::chrono::hours{1}));
    EXPECT_EQ(send_all(server_end_.get(), "reply"), SendResult::peer_gone);
  }
  take_signal();
}

TEST_F(BlockingClients, LeaveNothingBehindWithoutASignal) {
  { const BlockingClient client{server_end_.get()}; }
  EXPECT_FALSE(is_stopped());
  say("more");
  EXPECT_EQ(receive(), "more");
}

}  // namespace
}  // namespace netdyno
