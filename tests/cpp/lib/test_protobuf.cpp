#include "lib/protocol/protobuf.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/cpp/property.hpp"
#include "work.pb.h"

namespace netdyno {
namespace {

using namespace std::string_view_literals;

TEST(PartsFit, RefusesWhatIsLongerThanWhatFollows) {
  EXPECT_FALSE(parts_fit("\x0a\x02x"sv));                                 // two bytes, and one follows
  EXPECT_FALSE(parts_fit("\x0a\xff\xff\xff\xff\x01\x1a\xdd\xdd\xdd"sv));  // a text within it would be reserved
  EXPECT_FALSE(parts_fit("\x0a"sv));
  EXPECT_FALSE(parts_fit("\x08\xff"sv));
  EXPECT_FALSE(parts_fit("\x09xxxxxxx"sv));
  EXPECT_FALSE(parts_fit("\x0dxxx"sv));
  EXPECT_FALSE(parts_fit("\x0a\x01x\x0a\x01"sv));
}

TEST(PartsFit, RefusesTagsThatTheParserWouldCut) {
  EXPECT_FALSE(parts_fit("\x88\x80\x80\x80\x10\x01"sv));
  EXPECT_FALSE(parts_fit("\x0a\x06\x88\x80\x80\x80\x10\x01"sv));
  EXPECT_FALSE(parts_fit("\x12\x06\x88\x80\x80\x80\x10\x01"sv));
  EXPECT_FALSE(parts_fit("\x0b\x88\x80\x80\x80\x10\x01\x0c"sv));
  EXPECT_FALSE(parts_fit("\x0a\x08\x0b\x88\x80\x80\x80\x10\x01\x0c"sv));
  EXPECT_TRUE(parts_fit("\xf8\xff\xff\xff\x0f\x01"sv));
  EXPECT_TRUE(parts_fit("\x1a\x06\x88\x80\x80\x80\x10\x01"sv));          // a text
  EXPECT_TRUE(parts_fit("\x0b\x0a\x06\x88\x80\x80\x80\x10\x01\x0c"sv));  // a text in an unknown group
}

TEST(PartsFit, LeavesAllElseToTheParser) {
  EXPECT_TRUE(parts_fit(""sv));
  EXPECT_TRUE(parts_fit("\x0a\x02xx"sv));
  EXPECT_TRUE(parts_fit("\x09xxxxxxxx\x0dxxxx\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv));
  EXPECT_TRUE(parts_fit("\x0b\x0a\x01x\x0c"sv));
}

PROPERTY(PartsFit, TakesEveryMessage) {
  const auto job = draw::any<std::uint32_t>();
  const auto workload = draw::any<std::int32_t>();
  const auto stamp = draw::text();
  wire::WorkMessage message;
  message.mutable_request()->set_job_id(job);
  message.mutable_request()->set_workload(workload);
  message.mutable_request()->set_stamp(stamp);
  RC_ASSERT(parts_fit(message.SerializeAsString()));
}

}  // namespace
}  // namespace netdyno
