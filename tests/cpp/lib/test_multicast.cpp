#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "lib/net/descriptor.hpp"
#include "lib/net/multicast.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

using testing::HasSubstr;

MulticastUrl parsed(const std::string& text) { return parse_multicast_url(parse_url(text).value()); }

std::string why_refused(const std::string& text) {
  try {
    parsed(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(MulticastUrl, ReadsItsParts) {
  const auto url = parsed("multicast://239.1.2.3:7000?ttl=1&interface=v0&server=10.0.0.1");
  EXPECT_EQ(to_string(url.group), "239.1.2.3");
  EXPECT_EQ(url.port, 7000);
  EXPECT_EQ(url.interface, "v0");
  EXPECT_EQ(to_string(url.server.value()), "10.0.0.1");
  EXPECT_EQ(url.ttl, 1);
}

TEST(MulticastUrl, StaysOnTheMachineAndKnowsNoServerUnlessToldSo) {
  const auto url = parsed("multicast://239.1.2.3:7000?interface=lo");
  EXPECT_EQ(url.ttl, 0);
  EXPECT_FALSE(url.server);
}

TEST(MulticastUrl, RefusesEachPartThatCannotBeMeant) {
  const std::string good = "multicast://239.1.2.3:7000?interface=lo";
  EXPECT_EQ(why_refused(good), "");
  EXPECT_THAT(why_refused("multicast://10.1.2.3:7000?interface=lo"), HasSubstr("10.1.2.3' is no IPv4 multicast"));
  EXPECT_THAT(why_refused("multicast://localhost:7000?interface=lo"), HasSubstr("'localhost' is no IPv4 multicast"));
  EXPECT_THAT(why_refused("multicast://[ff02::1]:7000?interface=lo"), HasSubstr("'ff02::1' is no IPv4 multicast"));
  EXPECT_THAT(why_refused("multicast://224.0.0.1:7000?interface=lo"), HasSubstr("reserved"));
  EXPECT_THAT(why_refused("multicast://239.1.2.3:7000"), HasSubstr("no interface is named"));
  EXPECT_THAT(why_refused("multicast://239.1.2.3:7000?interface="), HasSubstr("no interface is named"));
  EXPECT_THAT(why_refused(good + "&ttl=2"), HasSubstr("ttl '2' is neither"));
  EXPECT_THAT(why_refused(good + "&ttl="), HasSubstr("ttl '' is neither"));
  EXPECT_THAT(why_refused(good + "&server=me"), HasSubstr("server 'me'"));
  EXPECT_THAT(why_refused(good + "&server=239.1.2.3"), HasSubstr("server '239.1.2.3'"));
  EXPECT_THAT(why_refused(good + "&interface=lo"), HasSubstr("'interface' stands twice"));
  EXPECT_THAT(why_refused(good + "&iface=lo"), HasSubstr("unknown key 'iface'"));
  EXPECT_THAT(why_refused(good + "&ttl"), HasSubstr("'ttl' after '?' is no key=value"));
  EXPECT_THAT(why_refused(good + "&&ttl=1"), HasSubstr("'' after '?' is no key=value"));
}

PROPERTY(MulticastUrl, FormattingRoundTrips) {
  const auto port = draw::any<std::uint16_t>();
  const auto far = draw::any<bool>();
  const auto group = draw::between(0xe0000100U, 0xefffffffU);
  const auto server = draw::any<bool>() ? draw::between(1U, 0xdfffffffU) : 0;
  MulticastUrl url{.group = {htonl(group)}, .port = port, .interface = "eth0.7", .server = {}, .ttl = far ? 1 : 0};
  if (server) url.server = in_addr{htonl(server)};
  const MulticastUrl again = parsed(format_url(to_url(url)));
  RC_ASSERT(again.group.s_addr == url.group.s_addr);
  RC_ASSERT(again.port == url.port);
  RC_ASSERT(again.interface == url.interface);
  RC_ASSERT(again.server.has_value() == url.server.has_value());
  if (url.server) RC_ASSERT(again.server->s_addr == url.server->s_addr);
  RC_ASSERT(again.ttl == url.ttl);
}

PROPERTY(MulticastUrl, AnyQueryIsRefusedOrHasAnInterface) {
  std::string query;
  for (auto left = draw::count(0); left > 0; --left) {
    query += draw::one_of<std::string>({"interface", "server", "ttl", "=", "&", "1", "lo", "x"});
  }
  try {
    RC_ASSERT(!parse_multicast_url({"multicast", "239.1.2.3", 1, query}).interface.empty());
  } catch (const std::invalid_argument& error) {
    RC_ASSERT(std::strlen(error.what()) > 0);
  }
}

std::string this_network() {
  struct stat here {};
  if (stat("/proc/self/ns/net", &here) != 0) throw std::runtime_error("no /proc/self/ns/net");
  return std::to_string(here.st_ino);
}

TEST(MulticastRule, OnlyTheMarkOfThisVeryNamespaceCounts) {
  unsetenv("NETDYNO_PRIVATE_NETWORK");
  EXPECT_THAT(why_no_multicast(), HasSubstr("--multicast-anywhere"));
  for (const std::string& mark : {std::string{}, std::string{"1"}, "0" + this_network(), this_network() + "0"}) {
    setenv("NETDYNO_PRIVATE_NETWORK", mark.c_str(), 1);
    EXPECT_NE(why_no_multicast(), "") << mark;
  }
  setenv("NETDYNO_PRIVATE_NETWORK", this_network().c_str(), 1);
  EXPECT_EQ(why_no_multicast(), "");
}

void bring_up(const char* name) {
  const UniqueFd any{socket(AF_INET, SOCK_DGRAM, 0)};
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP;
  ASSERT_EQ(ioctl(any.get(), SIOCSIFFLAGS, &request), 0);
}

/// In a network of the test's own, for the rest of the program's life.
class Multicast : public testing::Test {
 protected:
  void SetUp() override {
    const std::string mark_before = this_network();
    const int kind = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER;
    if (unshare(kind) != 0) GTEST_SKIP() << "no namespaces here: " << std::strerror(errno);
    setenv("NETDYNO_PRIVATE_NETWORK", mark_before.c_str(), 1);
  }

  static UniqueFd bound(const std::string& address, std::uint16_t port) {
    UniqueFd fd{socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in where = place(address, port);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    return fd;
  }

  static sockaddr_in place(const std::string& address, std::uint16_t port) {
    sockaddr_in where{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    inet_pton(AF_INET, address.c_str(), &where.sin_addr);
    return where;
  }

  static void send(const UniqueFd& from, const std::string& text) {
    const sockaddr_in to = place("239.1.2.3", 7000);
    ASSERT_EQ(sendto(from.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(text.size()));
  }

  /// Receives what has arrived; on a loopback interface that is settled when the send returns.
  static std::string received(const UniqueFd& fd) {
    char buffer[100];
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    return n < 0 ? "" : std::string{buffer, static_cast<std::size_t>(n)};
  }

  const in_addr group = parsed("multicast://239.1.2.3:7000?interface=lo").group;
};

TEST_F(Multicast, AMarkOfTheNamespaceBeforeIsRefused) { EXPECT_NE(why_no_multicast(), ""); }

TEST_F(Multicast, AnInterfaceHasToBeThereAndUp) {
  EXPECT_THROW(
      try { find_interface("none0"); } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "there is no interface 'none0'");
        throw;
      },
      std::invalid_argument);
  EXPECT_THROW(
      try { find_interface("lo"); } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "interface 'lo' is not up");
        throw;
      },
      std::invalid_argument);
  bring_up("lo");
  const Interface lo = find_interface("lo");
  EXPECT_EQ(lo.index, 1);
  EXPECT_EQ(to_string(lo.address), "127.0.0.1");
}

using MulticastPlaceTest = Multicast;

MulticastPlace place_of(const std::string& url, bool anywhere) {
  return multicast_place("prog", "--listen", parse_url(url).value(), anywhere);
}

TEST_F(MulticastPlaceTest, ServesOnTheInterfacesOwnAddressUnlessToldOtherwise) {
  bring_up("lo");
  setenv("NETDYNO_PRIVATE_NETWORK", this_network().c_str(), 1);
  const auto place = place_of("multicast://239.1.2.3:7000?interface=lo", false);
  EXPECT_EQ(place.interface.index, 1);
  EXPECT_EQ(format_url(to_url(place.url)), "multicast://239.1.2.3:7000?interface=lo&server=127.0.0.1");
  EXPECT_EQ(to_string(*place_of("multicast://239.1.2.3:7000?interface=lo&server=127.0.0.9", false).url.server),
            "127.0.0.9");
}

TEST_F(MulticastPlaceTest, EndsTheProgramInOneLine) {
  using testing::ExitedWithCode;
  bring_up("lo");
  const char* good = "multicast://239.1.2.3:7000?interface=lo";
  EXPECT_EXIT(place_of(good, false), ExitedWithCode(2), "prog: multicast is refused outside a private network");
  EXPECT_EQ(place_of(good, true).interface.index, 1);
  EXPECT_EXIT(place_of("multicast://239.1.2.3:7000", true), ExitedWithCode(2), "prog: --listen: no interface is named");
  EXPECT_EXIT(place_of("multicast://239.1.2.3:7000?interface=x0", true), ExitedWithCode(2),
              "--listen: there is no interface 'x0'");
}

TEST_F(Multicast, ReachesEveryMemberOnceAndNobodyElse) {
  bring_up("lo");
  const Interface lo = find_interface("lo");
  const UniqueFd first = bound("239.1.2.3", 7000);
  const UniqueFd second = bound("239.1.2.3", 7000);
  const UniqueFd of_another_group = bound("0.0.0.0", 7000);
  ASSERT_TRUE(join_group(first.get(), group, lo));
  ASSERT_TRUE(join_group(second.get(), group, lo));
  ASSERT_TRUE(join_group(of_another_group.get(), place("239.1.2.4", 0).sin_addr, lo));

  const UniqueFd sender = bound("127.0.0.1", 0);
  set_multicast_output(sender.get(), lo, 0);
  send(sender, "hello");
  for (const UniqueFd* member : {&first, &second}) {
    EXPECT_EQ(received(*member), "hello");
    EXPECT_EQ(received(*member), "");
  }
  EXPECT_EQ(received(of_another_group), "");

  leave_group(second.get(), group, lo);
  send(sender, "again");
  EXPECT_EQ(received(first), "again");
  EXPECT_EQ(received(second), "");
}

TEST_F(Multicast, ASenderThatJoinsGetsNothingOnItsOwnAddress) {
  bring_up("lo");
  const Interface lo = find_interface("lo");
  const UniqueFd sender = bound("127.0.0.1", 7000);
  ASSERT_TRUE(join_group(sender.get(), group, lo));
  set_multicast_output(sender.get(), lo, 0);
  send(sender, "hello");
  EXPECT_EQ(received(sender), "");
}

TEST_F(Multicast, TheTimeToLiveIsTheOneThatWasAskedFor) {
  bring_up("lo");
  const UniqueFd sender = bound("127.0.0.1", 0);
  for (const int ttl : {0, 1}) {
    set_multicast_output(sender.get(), find_interface("lo"), ttl);
    int seen = -1;
    socklen_t size = sizeof seen;
    ASSERT_EQ(getsockopt(sender.get(), IPPROTO_IP, IP_MULTICAST_TTL, &seen, &size), 0);
    EXPECT_EQ(seen, ttl);
  }
}

}  // namespace
}  // namespace netdyno
