#include <gtest/gtest.h>

#include <string>

#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using namespace std::string_literals;

std::string_view text(const ControlBytes& bytes) { return {bytes.data(), bytes.size()}; }

constexpr ControlKind kinds[]{ControlKind::hello, ControlKind::welcome, ControlKind::full, ControlKind::bye};

TEST(Control, IsFourZerosFourLettersAndTheTokenInNetworkByteOrder) {
  EXPECT_EQ(text(encode_control({ControlKind::hello, 0x0102030405060708})), "\0\0\0\0HELO\1\2\3\4\5\6\7\10"s);
  EXPECT_EQ(text(encode_control({ControlKind::bye, 0xff})), "\0\0\0\0BYE!\0\0\0\0\0\0\0\377"s);
}

PROPERTY(Control, RoundTrips) {
  const auto token = draw::any<std::uint64_t>();
  for (const ControlKind kind : kinds) {
    const ControlBytes bytes = encode_control({kind, token});
    const auto decoded = decode_control(text(bytes));
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(decoded->kind == kind);
    RC_ASSERT(decoded->token == token);
  }
}

TEST(Control, AnythingElseIsNone) {
  const ControlBytes bytes = encode_control({ControlKind::welcome, 1});
  const std::string_view whole = text(bytes);
  EXPECT_FALSE(decode_control(""));
  EXPECT_FALSE(decode_control(whole.substr(0, control_size - 1)));
  EXPECT_FALSE(decode_control(std::string{whole} + "x"));
  EXPECT_FALSE(decode_control("\0\0\0\0HULO12345678"s));
  EXPECT_FALSE(decode_control("\0\0\0\1HELO12345678"s));
  EXPECT_TRUE(is_control("\0\0\0\0"s));
  EXPECT_FALSE(is_control("\0\0\0"s));
}

PROPERTY(OneMessage, IsAFrameOfExactlyItsLength) {
  const auto body = draw::text();
  const auto header = encode_frame_header(body.size());
  const std::string whole = std::string(header.data(), header.size()) + body;
  for (const Workload workload : {Workload::rpc, Workload::chat}) {
    RC_ASSERT(is_one_message(workload, whole) == !body.empty());
    RC_ASSERT(!is_one_message(workload, whole + "x"));
    RC_ASSERT(!is_one_message(workload, whole.substr(0, whole.size() - 1)));
    RC_ASSERT(!is_one_message(workload, body.substr(0, 3)));
  }
}

TEST(OneMessage, OfEchoIsAnythingButNothingAndControl) {
  EXPECT_TRUE(is_one_message(Workload::echo, "x"));
  EXPECT_FALSE(is_one_message(Workload::echo, ""));
  EXPECT_FALSE(is_one_message(Workload::echo, "\0\0\0\0HELO12345678"s));
  EXPECT_FALSE(is_one_message(Workload::echo, "\0\0\0\0"s));
}

}  // namespace
}  // namespace netdyno
