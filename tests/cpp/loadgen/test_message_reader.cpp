#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "loadgen/match/message_reader.hpp"
#include "tests/cpp/property.hpp"
#include "work.pb.h"

namespace netdyno::load {
namespace {

struct SeenReplies : ReplySink {
  void on_reply(const Stamp& stamp, std::size_t size) override { replies.push_back(stamp.sequence), bytes += size; }
  void on_corrupt() override { ++corrupted; }
  std::vector<std::uint64_t> replies;
  std::size_t bytes = 0;
  int corrupted = 0;
};

/// A workload as a server that answers well would send it.
struct Wire {
  explicit Wire(Workload workload) {
    plan.url.transport = "udp";
    plan.workload = workload;
    plan.size = 40;
    codec = make_codec(plan);
  }

  std::string reply(std::uint64_t sequence) const {
    std::string request;
    codec->encode({0, sequence}, request);
    if (plan.workload != Workload::rpc) return request;
    wire::WorkMessage request_message;
    request_message.ParseFromString(request.substr(4));
    wire::WorkMessage message;
    message.mutable_response()->set_job_id(request_message.request().job_id());
    message.mutable_response()->set_is_complete(true);
    message.mutable_response()->set_stamp(request_message.request().stamp());
    const std::string body = message.SerializeAsString();
    return std::string{"\0\0\0", 3} + static_cast<char>(body.size()) + body;
  }

  LoadPlan plan;
  std::unique_ptr<Codec> codec;
};

class MessageReaders : public testing::TestWithParam<Workload> {
 protected:
  Wire wire{GetParam()};
  MessageReader reader{*wire.codec};
  SeenReplies seen;
};

TEST_P(MessageReaders, TakeAMessageForOneReply) {
  for (std::uint64_t i = 1; i < 6; ++i) reader.receive(wire.reply(i), seen);
  EXPECT_EQ(seen.replies, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(seen.bytes, 5 * wire.reply(1).size());
  EXPECT_EQ(seen.corrupted, 0);
}

TEST_P(MessageReaders, CarryNothingFromATruncatedMessageToTheNext) {
  const std::string whole = wire.reply(1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    seen = {};
    reader.receive(whole.substr(0, size), seen);
    EXPECT_EQ(seen.corrupted, 1) << size;
    reader.receive(whole.substr(size), seen);
    EXPECT_EQ(seen.corrupted, size == 0 ? 1 : 2) << size;
    reader.receive(wire.reply(2), seen);
    EXPECT_EQ(seen.replies.back(), 2U) << size;
  }
}

TEST_P(MessageReaders, TakeTwoInOneForACorruptMessage) {
  reader.receive(wire.reply(1) + wire.reply(2), seen);
  EXPECT_EQ(seen.corrupted, 1);
  reader.receive(wire.reply(3) + "x", seen);
  EXPECT_EQ(seen.corrupted, 2);
  EXPECT_TRUE(seen.replies.empty());
  reader.receive(wire.reply(4), seen);
  EXPECT_EQ(seen.replies, (std::vector<std::uint64_t>{4}));
}

TEST_P(MessageReaders, TakeAControlMessageThatGotHereForACorruptOne) {
  reader.receive(std::string{"\0\0\0\0HULO12345678", 16}, seen);
  EXPECT_EQ(seen.corrupted, 1);
  reader.receive(wire.reply(1), seen);
  EXPECT_EQ(seen.replies.size(), 1U);
}

/// Each message is judged once, and a good one is found behind whatever came before.
TEST_P(MessageReaders, JudgeAnyMessageOnceAndForget) {
  check([this] {
    const auto others = draw::many(draw::text);
    SeenReplies judged;
    for (const auto& bytes : others) reader.receive(bytes, judged);
    RC_ASSERT(judged.corrupted == static_cast<int>(others.size()));
    reader.receive(wire.reply(9), judged);
    RC_ASSERT(judged.replies == std::vector<std::uint64_t>{9});
  });
}

TEST_P(MessageReaders, SeeEveryBitThatWasFlipped) {
  const std::string whole = wire.reply(1);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    reader.receive(broken, seen);
  }
  // What is not stamp but Protobuf's can be written in more ways than one (a true that is 3, say).
  const int harmless = static_cast<int>(seen.replies.size());
  EXPECT_EQ(seen.corrupted + harmless, static_cast<int>(8 * whole.size()));
  EXPECT_LE(harmless, GetParam() == Workload::rpc ? 7 : 0);
}

INSTANTIATE_TEST_SUITE_P(Of, MessageReaders, testing::Values(Workload::echo, Workload::rpc, Workload::chat),
                         [](const auto& test) { return std::string{netdyno::to_string(test.param)}; });

}  // namespace
}  // namespace netdyno::load
