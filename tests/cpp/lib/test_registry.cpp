#include "lib/server/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace netdyno {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(Registry, ShowsWhoHasJoinedAndNotLeft) {
  Registry<int> registry;
  const auto one = std::make_shared<int>(1), two = std::make_shared<int>(2);
  EXPECT_THAT(*registry.snapshot(), IsEmpty());
  registry.join(one);
  registry.join(two);
  EXPECT_THAT(*registry.snapshot(), UnorderedElementsAre(one, two));
  registry.leave(one);
  registry.leave(one);
  EXPECT_THAT(*registry.snapshot(), ElementsAre(two));
}

TEST(Registry, ASnapshotStaysWhatItWas) {
  Registry<int> registry;
  const auto one = std::make_shared<int>(1);
  registry.join(one);
  const auto before = registry.snapshot();
  registry.leave(one);
  EXPECT_THAT(*before, ElementsAre(one));
}

TEST(Registry, CopiesOnlyAfterAChange) {
  Registry<int> registry;
  registry.join(std::make_shared<int>(1));
  const auto first = registry.snapshot();
  EXPECT_EQ(registry.snapshot(), first);
  registry.join(std::make_shared<int>(2));
  EXPECT_NE(registry.snapshot(), first);
}

TEST(Registry, HoldsNobodyWhoHasLeft) {
  Registry<int> registry;
  const auto one = std::make_shared<int>(1);
  registry.join(one);
  registry.snapshot();
  registry.leave(one);
  EXPECT_EQ(one.use_count(), 1);
}

TEST(Registry, ThreadsComeAndGoWhileOthersLook) {  // what the thread sanitizer watches
  Registry<int> registry;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&registry, t] {
      for (int i = 0; i < 1000; ++i) {
        const auto mine = std::make_shared<int>(t);
        registry.join(mine);
        const auto everybody = registry.snapshot();
        EXPECT_THAT(*everybody, testing::Contains(mine));
        registry.leave(mine);
      }
    });
  threads.clear();
  EXPECT_THAT(*registry.snapshot(), IsEmpty());
}

}  // namespace
}  // namespace netdyno
