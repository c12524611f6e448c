#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/cli/url.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

TEST(Url, ReadsItsParts) {
  const auto url = parse_url("multicast://239.1.2.3:7000?interface=lo");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->transport, "multicast");
  EXPECT_EQ(url->host, "239.1.2.3");
  EXPECT_EQ(url->port, 7000);
  EXPECT_EQ(url->query, "interface=lo");
}

TEST(Url, ReadsASchemeInAnyCase) {
  const auto url = parse_url("ZMQ+Tcp://H:1");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->transport, "zmq+tcp");
  EXPECT_EQ(url->host, "H");
}

TEST(Url, TakesIpv6InBracketsOnly) {
  const auto url = parse_url("tcp://[fe80::1%eth0]:80");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "fe80::1%eth0");
  EXPECT_EQ(format_url(*url), "tcp://[fe80::1%eth0]:80");
  EXPECT_FALSE(parse_url("tcp://::1:80"));
}

TEST(Url, RefusesWhatIsNone) {
  for (const char* text :
       {"", "tcp", "tcp:", "tcp://", "://h:1", "tcp://h", "tcp://:1", "tcp://h:", "tcp://h:x", "tcp://h:-1",
        "tcp://h:65536", "tcp://h:1/", "tcp://h:1x", "tcp://[::1]", "tcp://[]:1", "127.0.0.1:1"})
    EXPECT_FALSE(parse_url(text)) << '\'' << text << '\'';
}

TEST(Url, RefusesHostsThatNoResolverCanKnow) {
  for (const char* text : {"tcp://[a:1", "tcp://a]:1", "tcp://[localhost]:1", "tcp://a b:1", "tcp:// :1", "tcp://a/b:1",
                           "tcp://user@h:1", "tcp://a\nb:1", "tcp://[::1]x:1"})
    EXPECT_FALSE(parse_url(text)) << '\'' << text << '\'';
}

PROPERTY(Url, AnyTextIsRefusedOrSurvivesFormatting) {
  const auto text = draw::text_of("ab019.:[]?/%=-");
  const auto url = parse_url("tcp://" + text);
  if (!url) return;
  const auto again = parse_url(format_url(*url));
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->host == url->host);
  RC_ASSERT(again->port == url->port);
  RC_ASSERT(again->query == url->query);
}

PROPERTY(Url, FormattingRoundTrips) {
  const auto port = draw::any<std::uint16_t>();
  const auto host = draw::one_of<std::string>({"127.0.0.1", "localhost", "a-b.example", "::1", "fe80::1%eth0"});
  const Url url{"tcp", host, port, draw::one_of<std::string>({"", "a=b"})};
  const auto parsed = parse_url(format_url(url));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->host == host);
  RC_ASSERT(parsed->port == port);
  RC_ASSERT(parsed->query == url.query);
}

}  // namespace
}  // namespace netdyno
