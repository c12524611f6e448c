#include "loadgen/match/flight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/cpp/property.hpp"

namespace netdyno::load {
namespace {

std::uint64_t expire(Flight& flight, Nanos deadline) {
  std::uint64_t count = 0;
  flight.expire(deadline, [&](const Flight::Times&) { ++count; });
  return count;
}

TEST(Flight, GivesTheTimesOfAnAnsweredMessageOnce) {
  Flight flight;
  flight.intend(100);
  flight.intend(200);
  EXPECT_FALSE(flight.answer(0)) << "not sent yet";
  EXPECT_EQ(flight.send(110), 100);
  EXPECT_EQ(flight.send(220), 200);
  const auto second = flight.answer(1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->times.intended, 200);
  EXPECT_EQ(second->times.sent, 220);
  EXPECT_FALSE(flight.answer(1));
  EXPECT_EQ(flight.waiting(), 1U);
  EXPECT_TRUE(flight.answer(0));
  EXPECT_EQ(flight.waiting(), 0U);
}

TEST(Flight, ForgetsWhatWaitsForAConnectionForTooLong) {
  Flight flight;
  for (const Nanos intended : {100, 200, 300, 400}) flight.intend(intended);
  flight.send(110);
  EXPECT_EQ(flight.forget_unsent(500), 0U) << "something is on its way";
  flight.take_back([](const Flight::Times&) {});
  EXPECT_EQ(flight.forget_unsent(300), 2U);
  EXPECT_EQ(flight.waiting(), 2U);
  EXPECT_EQ(flight.send(510), 300);
  EXPECT_EQ(flight.send(520), 400);
  EXPECT_EQ(flight.answer(2)->times.intended, 300);
  EXPECT_EQ(flight.forget_unsent(1000), 0U);
}

TEST(Flight, FindsAMessageThatThousandsOvertook) {
  Flight flight;
  constexpr std::uint64_t count = 5000;
  for (std::uint64_t i = 0; i < count; ++i) {
    flight.intend(static_cast<Nanos>(i));
    flight.send(static_cast<Nanos>(i));
    if (i != 3) {
      EXPECT_TRUE(flight.answer(i));
    }
  }
  EXPECT_EQ(flight.unanswered(), 1U);
  const auto late = flight.answer(3);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->times.intended, 3);
  EXPECT_EQ(flight.unanswered(), 0U);
}

TEST(Flight, CountsAnExpiredMessageOnceAndSaysSoWhenItIsAnsweredLate) {
  Flight flight;
  for (Nanos moment = 0; moment < 3; ++moment) {
    flight.intend(moment);
    flight.send(moment);
  }
  std::vector<Nanos> given_up;
  flight.expire(2, [&](const Flight::Times& times) { given_up.push_back(times.sent); });
  EXPECT_EQ(given_up, (std::vector<Nanos>{0, 1}));
  EXPECT_EQ(flight.overdue(), 2U);
  EXPECT_EQ(expire(flight, 2), 0U);
  EXPECT_TRUE(flight.answer(0)->expired);
  EXPECT_FALSE(flight.answer(2)->expired);
  EXPECT_EQ(expire(flight, never), 0U);
  EXPECT_EQ(flight.waiting(), 1U);
  EXPECT_EQ(flight.overdue(), 1U);
}

TEST(Flight, DoesNotExpireWhatWasNotSent) {
  Flight flight;
  flight.intend(1);
  EXPECT_EQ(expire(flight, never), 0U);
}

/// The behaviour of a Flight, without its ring.
struct Model {
  struct Message {
    Nanos intended;
    bool sent = false;
    bool answered = false;
    bool expired = false;
  };
  std::vector<Message> messages;
  std::size_t sent = 0;

  std::uint64_t expire(Nanos deadline) {
    std::uint64_t count = 0;
    for (Message& m : messages) {
      if (!m.sent || m.answered || m.expired || m.intended >= deadline) continue;
      m.expired = true;
      ++count;
    }
    return count;
  }
  std::uint64_t overdue() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(messages, [](const Message& m) { return m.expired && !m.answered; }));
  }
  std::uint64_t waiting() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(messages, [](const Message& m) { return !m.answered; }));
  }
};

PROPERTY(Flight, BehavesLikeAPlainList) {
  const auto steps = draw::many([] { return std::pair{draw::any<unsigned char>(), draw::any<unsigned char>()}; });
  Flight flight;
  Model model;
  Nanos now = 0;
  for (const auto& [kind, detail] : steps) {
    now += detail;
    if (kind % 4 == 0) {
      flight.intend(now);
      model.messages.push_back({now});
    } else if (kind % 4 == 1 && model.sent < model.messages.size()) {
      RC_ASSERT(flight.next_to_send() == model.sent);
      model.messages[model.sent].sent = true;
      RC_ASSERT(flight.send(now) == model.messages[model.sent++].intended);
    } else if (kind % 4 == 2) {
      const std::size_t sequence = detail % (model.messages.size() + 2);
      const auto answer = flight.answer(sequence);
      const bool known = sequence < model.sent && !model.messages[sequence].answered;
      RC_ASSERT(answer.has_value() == known);
      if (!known) continue;
      model.messages[sequence].answered = true;
      RC_ASSERT(answer->times.intended == model.messages[sequence].intended);
      RC_ASSERT(answer->expired == model.messages[sequence].expired);
    } else if (kind % 4 == 3) {
      RC_ASSERT(expire(flight, now - 50) == model.expire(now - 50));
    }
    RC_ASSERT(flight.waiting() == model.waiting());
    RC_ASSERT(flight.overdue() == model.overdue());
    RC_ASSERT(flight.unsent() == model.messages.size() - model.sent);
  }
}

TEST(Flight, WhatIsTakenBackWaitsWithItsTimeAndWhatHasExpiredIsOut) {
  Flight flight;
  for (const Nanos intended : {10, 20, 30, 40}) flight.intend(intended);
  for (const Nanos sent : {11, 21, 31}) flight.send(sent);
  EXPECT_EQ(expire(flight, 15), 1U);
  std::vector<Nanos> taken;
  EXPECT_EQ(flight.take_back([&](const Flight::Times& times) { taken.push_back(times.intended); }), 1U);
  EXPECT_EQ(taken, (std::vector<Nanos>{20, 30}));
  EXPECT_EQ(flight.overdue(), 0U);
  EXPECT_EQ(flight.unsent(), 3U);
  EXPECT_EQ(flight.next_to_send(), 1U);
  EXPECT_EQ(flight.send(50), 20);
  const auto answer = flight.answer(1);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->times.intended, 20);
  EXPECT_EQ(answer->times.sent, 50);
  EXPECT_FALSE(answer->expired);
}

}  // namespace
}  // namespace netdyno::load
