#include "lib/server/outbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

struct Part {
  const char* data;
  std::size_t size;
};
using TestOutbox = Outbox<Part>;

SharedFrame shared_frame(const std::string& header, const std::string& body) {
  return std::make_shared<const Frame>(Frame{header + body, header.size()});
}

/// The writes that sending everything takes, each as text.
std::vector<std::string> send_all(TestOutbox& outbox) {
  std::vector<std::string> writes;
  for (auto parts = outbox.next(); !parts.empty(); parts = outbox.next()) {
    std::string bytes;
    for (const Part& part : parts) bytes.append(part.data, part.size);
    writes.push_back(bytes);
    outbox.sent(bytes.size());
  }
  return writes;
}

TEST(Outbox, GathersWhatWaits) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 1000};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  EXPECT_TRUE(outbox.push(shared_frame("2", "two")));
  EXPECT_EQ(send_all(outbox), (std::vector<std::string>{"1one2two"}));
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, SingleSendsEachFrameByItself) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::single, 1000};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  EXPECT_TRUE(outbox.push(shared_frame("2", "two")));
  EXPECT_EQ(send_all(outbox), (std::vector<std::string>{"1one", "2two"}));
}

TEST(Outbox, SplitSendsEachPartByItself) {
  TestOutbox outbox{WriteMode::split, DeliveryMode::joined, 1000};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  EXPECT_TRUE(outbox.push(shared_frame("2", "two")));
  EXPECT_EQ(send_all(outbox), (std::vector<std::string>{"1", "one", "2", "two"}));
}

TEST(Outbox, HasMuchAboveHalfOfItsLimitAndTakesMoreThanThatOnlyByForce) {
  const auto frame = shared_frame("1234", std::string(96, 'x'));
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 2 * held_for(*frame)};
  EXPECT_TRUE(outbox.push(frame));
  EXPECT_FALSE(outbox.much());
  EXPECT_TRUE(outbox.push(frame));
  EXPECT_TRUE(outbox.much());
  EXPECT_FALSE(outbox.push(frame));
  outbox.push_beyond(frame);
  EXPECT_EQ(send_all(outbox).front().size(), 3 * frame->bytes.size());
  EXPECT_FALSE(outbox.much());
}

TEST(Outbox, WhatComesWhileSendingIsSentNext) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 1000};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  const auto sending = outbox.next();
  EXPECT_TRUE(outbox.push(shared_frame("2", "two")));
  ASSERT_EQ(sending.size(), 1U);
  EXPECT_EQ(std::string(sending[0].data, sending[0].size), "1one");
  outbox.sent(4);
  EXPECT_FALSE(outbox.empty());
  EXPECT_EQ(send_all(outbox), (std::vector<std::string>{"2two"}));
}

TEST(Outbox, RefusesWhatWouldExceedTheLimitUntilSomeIsSent) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 2 * (4 + frame_overhead)};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  EXPECT_TRUE(outbox.push(shared_frame("2", "two")));
  EXPECT_FALSE(outbox.push(shared_frame("", "3")));
  outbox.next();
  EXPECT_FALSE(outbox.push(shared_frame("", "3")));
  outbox.sent(8);
  EXPECT_TRUE(outbox.push(shared_frame("", "3")));
}

TEST(Outbox, AFrameCountsWhatItTakesToKeepIt) {
  for (const auto mode : {WriteMode::gathered, WriteMode::split}) {
    TestOutbox outbox{mode, DeliveryMode::joined, 10 * frame_overhead};
    for (int round = 0; round < 3; ++round) {
      int taken = 0;
      while (outbox.push(shared_frame("h", "b"))) ++taken;
      EXPECT_EQ(taken, 9);
      send_all(outbox);
    }
  }
}

TEST(Outbox, AnIdleReaderTakesOneFrameOfAnySize) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 1};
  EXPECT_TRUE(outbox.push(shared_frame("1", "one")));
  EXPECT_FALSE(outbox.push(shared_frame("", "2")));
}

TEST(Outbox, LetsGoOfTheFramesThatAreSent) {
  TestOutbox outbox{WriteMode::gathered, DeliveryMode::joined, 1000};
  const auto sent = shared_frame("1", "one");
  EXPECT_TRUE(outbox.push(sent));
  send_all(outbox);
  EXPECT_EQ(sent.use_count(), 1);
}

PROPERTY(Outbox, SendsEveryByteInOrderAndNeverHoldsMoreThanTheLimit) {
  const auto mode = draw::one_of({WriteMode::gathered, WriteMode::split});
  const std::size_t limit = draw::between<std::size_t>(1, 3000);
  const auto deliveries = draw::one_of({DeliveryMode::joined, DeliveryMode::single});
  TestOutbox outbox{mode, deliveries, limit};
  std::string accepted, sent;
  for (const bool push : draw::flips()) {
    if (push) {
      const auto body = draw::bytes(draw::between<std::size_t>(1, 40));
      if (outbox.push(shared_frame("head", body))) accepted += "head" + body;
      RC_ASSERT(accepted.size() - sent.size() <= std::max<std::size_t>(limit, 4 + 39));  // one frame is always taken
    } else {
      const auto parts = outbox.next();
      RC_ASSERT(parts.empty() == (sent == accepted));
      std::size_t bytes = 0;
      for (const Part& part : parts) {
        sent.append(part.data, part.size);
        bytes += part.size;
      }
      outbox.sent(bytes);
    }
  }
  for (const auto& bytes : send_all(outbox)) sent += bytes;
  RC_ASSERT(sent == accepted);
  RC_ASSERT(outbox.empty());
}

}  // namespace
}  // namespace netdyno
