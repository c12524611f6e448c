#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <vector>

#include "lib/net/resolve.hpp"
#include "loadgen/transport/route.hpp"

namespace netdyno::load {
namespace {

TEST(Resolve, TakesTheFamiliesInTurn) {
  std::vector<addrinfo> found(5);
  const int families[] = {AF_INET6, AF_INET6, AF_INET6, AF_INET, AF_INET};
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].ai_family = families[i];
    found[i].ai_next = i + 1 < found.size() ? &found[i + 1] : nullptr;
  }
  const std::vector<const addrinfo*> expected{&found[0], &found[3], &found[1], &found[4], &found[2]};
  EXPECT_EQ(take_families_in_turn(found.data()), expected);
}

TEST(Route, TriesAllInOrderAndSaysWhyTheFirstFailed) {
  Route route{3, 1, 3 * one_second};
  route.begin(0, 0);
  EXPECT_EQ(route.address(0), 0U);
  EXPECT_TRUE(route.take_next(0, ECONNREFUSED, 0));
  EXPECT_EQ(route.address(0), 1U);
  EXPECT_TRUE(route.take_next(0, ETIMEDOUT, 0));
  EXPECT_EQ(route.address(0), 2U);
  EXPECT_FALSE(route.take_next(0, ENETUNREACH, 0));
  EXPECT_EQ(route.error(0, ENETUNREACH), ECONNREFUSED);
}

TEST(Route, ANoWayToTheFirstIsNoReasonWhereAnotherHasOne) {
  Route route{2, 1, one_second};
  route.begin(0, 0);
  EXPECT_TRUE(route.take_next(0, ENETUNREACH, 0));
  EXPECT_FALSE(route.take_next(0, ECONNREFUSED, 0));
  EXPECT_EQ(route.error(0, ECONNREFUSED), ECONNREFUSED);
}

TEST(Route, TheAddressThatLedToTheServerIsThatOfAll) {
  Route route{3, 3, 3 * one_second};
  route.begin(0, 0);
  route.begin(1, 0);
  EXPECT_TRUE(route.take_next(0, ECONNREFUSED, 0));
  route.arrived(0);
  EXPECT_TRUE(route.take_next(1, ECONNREFUSED, 0)) << "it had begun before that was known";
  EXPECT_EQ(route.address(1), 1U);
  EXPECT_FALSE(route.take_next(1, ECONNREFUSED, 0));
  route.begin(2, 0);
  EXPECT_EQ(route.address(2), 1U);
  EXPECT_FALSE(route.take_next(2, ECONNREFUSED, 0)) << "the server is gone, and is looked for nowhere else";
}

TEST(Route, ASilentAddressHasItsShareOfTheTime) {
  Route route{2, 3, 2 * one_second};
  route.begin(0, 0);
  route.begin(1, 100);
  route.begin(2, 200);
  EXPECT_EQ(route.due(), one_second);
  EXPECT_FALSE(route.take_expired(one_second - 1));
  EXPECT_EQ(route.take_expired(one_second), 0U);
  EXPECT_TRUE(route.take_next(0, ETIMEDOUT, one_second));
  route.arrived(1);
  EXPECT_EQ(route.take_expired(3 * one_second), 2U)
      << "1 stands, and the last address of 0 has all the time that is left";
  EXPECT_FALSE(route.take_expired(3 * one_second));
  EXPECT_EQ(route.due(), never);
}

TEST(Route, OneAddressIsNeverLeft) {
  Route route{1, 1, one_second};
  route.begin(0, 0);
  EXPECT_EQ(route.due(), never);
  EXPECT_FALSE(route.take_next(0, ECONNREFUSED, 0));
  EXPECT_EQ(route.error(0, ECONNREFUSED), ECONNREFUSED);
}

}  // namespace
}  // namespace netdyno::load
