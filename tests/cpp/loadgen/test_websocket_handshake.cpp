#include <gtest/gtest.h>

#include <random>
#include <string>

#include "loadgen/codec/websocket_handshake.hpp"

namespace netdyno::load {
namespace {

TEST(WebSocketHandshake, ItsAnswerIsThatOfTheRfc) {
  EXPECT_EQ(compute_websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455, 1.3
}

/// Python's hashlib made these: of 55 and 56 bytes with the suffix, the last that fit one block and the first that do
/// not, and of three blocks.
TEST(WebSocketHandshake, AKeyOfAnyLengthHasTheAnswerOfItsHash) {
  EXPECT_EQ(compute_websocket_accept(std::string(19, 'k')), "tWclcP21hrR+xgjYVswtQRW71GQ=");
  EXPECT_EQ(compute_websocket_accept(std::string(20, 'k')), "tSsjsIAvEVIQ+IC5K8+T/OkG8nU=");
  EXPECT_EQ(compute_websocket_accept(std::string(130, 'k')), "+pZJALPQbIs2ukQ6PD/mc2YiaTk=");
}

TEST(WebSocketHandshake, EveryKeyIs16BytesAndAnother) {
  std::mt19937 random{1};
  const std::string first = draw_websocket_key(random);
  const std::string second = draw_websocket_key(random);
  EXPECT_EQ(first.size(), 24U);
  EXPECT_TRUE(first.ends_with("==") && second.ends_with("=="));
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace netdyno::load
