// How the threads of a server with a loop on each send to each other.
#include "servers/_shared/inbox/inbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace netdyno {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

using Frames = std::vector<SharedFrame>;

SharedFrame shared_frame(const std::string& text) { return std::make_shared<const Frame>(Frame{text, 0}); }

std::vector<std::string> texts(const Mail& mail) {
  std::vector<std::string> found;
  for (const auto& frame : mail.frames) found.push_back(frame->bytes);
  return found;
}

int edges(int epoll) {
  epoll_event event{};
  return epoll_wait(epoll, &event, 1, 0);
}

TEST(Inbox, GivesEachThingOnceAndInOrder) {
  Inbox inbox{100}, sender{100};
  inbox.add(Frames{shared_frame("a"), shared_frame("b")}, sender);
  inbox.add(Frames{shared_frame("c")}, sender);
  inbox.add(UniqueFd{dup(0)});
  inbox.tell_to_end();
  Mail mail;
  inbox.take(mail);
  EXPECT_EQ(texts(mail), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_THAT(mail.connections, SizeIs(1));
  EXPECT_TRUE(mail.end);
  EXPECT_EQ(mail.room, 0);
  inbox.take(mail);
  EXPECT_THAT(mail.frames, IsEmpty());
  EXPECT_THAT(mail.connections, IsEmpty());
  EXPECT_FALSE(mail.end);
}

TEST(Inbox, SharesTheFrame) {
  Inbox inbox{100}, sender{100};
  const auto frame = shared_frame("a");
  inbox.add(Frames{frame}, sender);
  Mail mail;
  inbox.take(mail);
  EXPECT_EQ(mail.frames.front(), frame);
  mail.clear();
  EXPECT_EQ(frame.use_count(), 1);
}

TEST(Inbox, AnEdgeFollowsWhenSomethingComesIntoAnEmptyOne) {
  Inbox inbox{100}, sender{100};
  const UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, inbox.wake_fd(), &event), 0);
  EXPECT_EQ(edges(epoll.get()), 0);
  Mail mail;
  for (int round = 0; round < 3; ++round) {
    inbox.add(Frames{shared_frame("a")}, sender);
    EXPECT_EQ(edges(epoll.get()), 1);
    inbox.add(Frames{shared_frame("b")}, sender);
    EXPECT_EQ(edges(epoll.get()), 0);  // it is awake already
    inbox.take(mail);
    EXPECT_THAT(mail.frames, SizeIs(2));
  }
}

TEST(Inbox, TellsWhoFilledItWhenThereIsRoomAgainAndOnlyOnce) {
  Inbox inbox{2}, sender{100}, second_sender{100};
  Mail mail;
  EXPECT_FALSE(inbox.add(Frames{shared_frame("ab")}, sender));
  EXPECT_TRUE(inbox.add(Frames{shared_frame("c")}, sender));
  EXPECT_FALSE(inbox.add(Frames{shared_frame("d")}, sender));  // will be notified already
  EXPECT_TRUE(inbox.add(Frames{shared_frame("e")}, second_sender));
  sender.take(mail);
  EXPECT_EQ(mail.room, 0);
  inbox.take(mail);
  EXPECT_EQ(texts(mail), (std::vector<std::string>{"ab", "c", "d", "e"}));
  for (Inbox* waiting : {&sender, &second_sender}) {
    waiting->take(mail);
    EXPECT_EQ(mail.room, 1);
  }
  inbox.take(mail);
  sender.take(mail);
  EXPECT_EQ(mail.room, 0);
  EXPECT_FALSE(inbox.add(Frames{shared_frame("f")}, sender));
}

TEST(Inbox, AClosedOneKeepsNothingAndNobodyWaiting) {
  Inbox inbox{1}, sender{100};
  Mail mail;
  EXPECT_TRUE(inbox.add(Frames{shared_frame("long")}, sender));
  inbox.close();
  sender.take(mail);
  EXPECT_EQ(mail.room, 1);
  EXPECT_FALSE(inbox.add(Frames{shared_frame("long")}, sender));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd kept{ends[0]};
  inbox.add(UniqueFd{ends[1]});
  pollfd closed{kept.get(), POLLIN, 0};
  EXPECT_EQ(poll(&closed, 1, 0), 1);
  EXPECT_NE(closed.revents & POLLHUP, 0);
}

/// Each thread sends to all others, reads its own inbox as it goes, and waits where an inbox is full, as a Worker does.
class Talker {
 public:
  Talker(std::vector<std::unique_ptr<Inbox>>& inboxes, std::size_t mine) : inboxes_(inboxes), mine_(mine) {}

  void run(int messages) {
    for (int i = 0; i < messages; ++i) {
      for (const auto& inbox : inboxes_)
        if (inbox.get() != &own() && inbox->add(Frames{shared_frame(std::to_string(mine_) + "x")}, own())) ++full_;
      while (full_ > 0) wait_and_take();
    }
    for (const std::size_t expected = (inboxes_.size() - 1) * static_cast<std::size_t>(messages); heard_ < expected;)
      wait_and_take();
  }

 private:
  Inbox& own() { return *inboxes_[mine_]; }

  void wait_and_take() {
    std::this_thread::yield();
    own().take(mail_);
    full_ -= mail_.room;
    heard_ += mail_.frames.size();
  }

  std::vector<std::unique_ptr<Inbox>>& inboxes_;
  std::size_t mine_;
  int full_ = 0;
  std::size_t heard_ = 0;
  Mail mail_;
};

TEST(Inbox, ThreadsThatFillEachOthersInboxesDoNotWaitForEver) {  // and what the thread sanitizer watches
  constexpr std::size_t threads = 4;
  std::vector<std::unique_ptr<Inbox>> inboxes;
  for (std::size_t i = 0; i < threads; ++i) inboxes.push_back(std::make_unique<Inbox>(10));
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < threads; ++i) running.emplace_back([&inboxes, i] { Talker{inboxes, i}.run(2000); });
}

}  // namespace
}  // namespace netdyno
