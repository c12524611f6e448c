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
  const auto first = std::make_shared<int>(1), second = std::make_shared<int>(2);
  EXPECT_THAT(*registry.snapshot(), IsEmpty());
  registry.join(first);
  registry.join(second);
  EXPECT_THAT(*registry.snapshot(), UnorderedElementsAre(first, second));
  registry.leave(first);
  registry.leave(first);
  EXPECT_THAT(*registry.snapshot(), ElementsAre(second));
}

TEST(Registry, ASnapshotStaysWhatItWas) {
  Registry<int> registry;
  const auto first = std::make_shared<int>(1);
  registry.join(first);
  const auto before = registry.snapshot();
  registry.leave(first);
  EXPECT_THAT(*before, ElementsAre(first));
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
  const auto first = std::make_shared<int>(1);
  registry.join(first);
  registry.snapshot();
  registry.leave(first);
  EXPECT_EQ(first.use_count(), 1);
}

TEST(Registry, ThreadsComeAndGoWhileOthersLook) {  // what the thread sanitizer watches
  Registry<int> registry;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&registry, t] {
      for (int i = 0; i < 1000; ++i) {
        const auto mine = std::make_shared<int>(t);
        registry.join(mine);
        const auto members = registry.snapshot();
        EXPECT_THAT(*members, testing::Contains(mine));
        registry.leave(mine);
      }
    });
  threads.clear();
  EXPECT_THAT(*registry.snapshot(), IsEmpty());
}

}  // namespace
}  // namespace netdyno
