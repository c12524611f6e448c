#include "lib/measure/deliveries.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/cpp/property.hpp"

namespace netdyno::load {
namespace {

using Verdict = Deliveries::Verdict;

TEST(Deliveries, TellOrderLatenessAndRepetitionApart) {
  Deliveries deliveries{1, 1};
  EXPECT_EQ(deliveries.note(0, 0, 0), Verdict::in_order);
  EXPECT_EQ(deliveries.note(0, 0, 2), Verdict::in_order);
  EXPECT_EQ(deliveries.note(0, 0, 1), Verdict::late);
  EXPECT_EQ(deliveries.note(0, 0, 1), Verdict::again);
  EXPECT_EQ(deliveries.note(0, 0, 2), Verdict::again);
}

TEST(Deliveries, GoOnBeyond32Bits) {
  Deliveries deliveries{1, 1};
  for (std::uint64_t sequence = 0; sequence <= 0x1'4000'0000; sequence += 0x4000'0000)
    EXPECT_EQ(deliveries.note(0, 0, sequence), Verdict::in_order);
  EXPECT_EQ(deliveries.note(0, 0, 0x1'2000'0000), Verdict::late);
  EXPECT_EQ(deliveries.note(0, 0, 0x1'2000'0000), Verdict::again);
  EXPECT_EQ(deliveries.note(0, 0, 0x1'4000'0000), Verdict::again);
}

PROPERTY(Deliveries, AgreeWithASetPerPair) {
  constexpr std::size_t receivers = 2, senders = 3;
  Deliveries deliveries{receivers, senders};
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::uint64_t>> seen;
  for (const auto sequence : draw::several<std::uint64_t>(0, 20)) {
    const auto receiver = draw::index(receivers), sender = draw::index(senders);
    auto& before = seen[{receiver, sender}];
    const bool latest = before.empty() || sequence > *before.rbegin();
    const bool first = before.insert(sequence).second;
    const Verdict wanted = !first ? Verdict::again : latest ? Verdict::in_order : Verdict::late;
    RC_ASSERT(deliveries.note(receiver, sender, sequence) == wanted);
  }
}

}  // namespace
}  // namespace netdyno::load
