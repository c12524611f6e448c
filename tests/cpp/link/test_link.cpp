#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "link/line.hpp"
#include "link/plan.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno::link {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ExitedWithCode;

constexpr Clock::time_point start{std::chrono::hours{1}};

Fate give(Line& line, const std::string& frame, Clock::time_point now) {
  std::memcpy(line.space().data(), frame.data(), frame.size());
  return line.take(frame.size(), now);
}

/// The losses among so many frames, as a text of '1' for each lost one.
std::string losses(double share, std::uint64_t seed, std::uint64_t direction, std::size_t frames) {
  Line line{{.loss = share, .seed = seed}, direction};
  std::string seen;
  for (std::size_t i = 0; i < frames; ++i) {
    const bool lost = give(line, "frame", start) == Fate::lost;
    seen += lost ? '1' : '0';
    if (!lost) line.pop();
  }
  return seen;
}

double lost_share(const std::string& seen) {
  return static_cast<double>(std::count(seen.begin(), seen.end(), '1')) / static_cast<double>(seen.size());
}

TEST(Line, CarriesAFrameAfterTheDelay) {
  Line line{{.delay = milliseconds{20}}, 0};
  EXPECT_EQ(line.held(), 0U);
  EXPECT_EQ(give(line, "hello", start), Fate::carried);
  EXPECT_EQ(line.held(), 1U);
  EXPECT_EQ(line.due(), start + milliseconds{20});
  EXPECT_EQ(line.frame(), "hello");
  line.pop();
  EXPECT_EQ(line.held(), 0U);
}

TEST(Line, WithoutDelayAFrameIsDueAtOnce) {
  Line line{{}, 0};
  give(line, "x", start);
  EXPECT_EQ(line.due(), start);
}

/// Frames come and go in any order of turns, also around the end of the ring: they leave as they came, each whole, each
/// a delay after it came.
PROPERTY(Line, KeepsOrderContentAndDelay) {
  const auto limit = draw::between<std::size_t>(1, 20);
  const auto arrive = draw::flips();
  Line line{{.delay = microseconds{100}, .limit = limit}, 0};
  Clock::time_point now = start;
  std::vector<std::pair<std::string, Clock::time_point>> sent;
  std::size_t received = 0;
  for (const bool arrival : arrive) {
    now += microseconds{7};
    if (arrival) {
      const std::string frame = "frame " + std::string(sent.size() % 50, '.') + std::to_string(sent.size());
      const bool full = line.held() == limit;
      RC_ASSERT(give(line, frame, now) == (full ? Fate::overflowed : Fate::carried));
      if (!full) sent.emplace_back(frame, now);
    } else if (line.held() > 0) {
      RC_ASSERT(line.frame() == sent[received].first);
      RC_ASSERT(line.due() == sent[received].second + microseconds{100});
      line.pop();
      ++received;
    }
  }
  RC_ASSERT(line.held() == sent.size() - received);
}

TEST(Line, DropsWhatComesWhileItIsFullAndGoesOn) {
  Line line{{.delay = milliseconds{1}, .limit = 2}, 0};
  EXPECT_EQ(give(line, "first", start), Fate::carried);
  EXPECT_EQ(give(line, "second", start), Fate::carried);
  EXPECT_EQ(give(line, "too many", start), Fate::overflowed);
  EXPECT_EQ(line.frame(), "first");
  line.pop();
  EXPECT_EQ(give(line, "fourth", start), Fate::carried);
  EXPECT_EQ(line.frame(), "second");
  line.pop();
  EXPECT_EQ(line.frame(), "fourth");
}

TEST(Line, LosesTheShareThatWasAsked) {
  // Four standard deviations of 100,000 draws, which a seed that is fixed does not leave.
  EXPECT_NEAR(lost_share(losses(0.01, 1, 0, 100'000)), 0.01, 0.0013);
  EXPECT_NEAR(lost_share(losses(0.5, 1, 0, 100'000)), 0.5, 0.0063);
  EXPECT_EQ(lost_share(losses(0, 1, 0, 100'000)), 0);
}

TEST(Line, LosesTheSameFramesWhileItIsFull) {
  const std::string seen = losses(0.5, 3, 0, 100);
  Line line{{.loss = 0.5, .limit = 1, .seed = 3}, 0};
  std::string full;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Fate fate = give(line, "frame", start);
    full += fate == Fate::lost ? '1' : '0';
  }
  EXPECT_EQ(line.held(), 1U);
  EXPECT_EQ(full, seen);
}

TEST(Line, LossesAreThoseOfTheSeedAndOfTheDirection) {
  const std::string seen = losses(0.3, 7, 0, 200);
  EXPECT_EQ(losses(0.3, 7, 0, 200), seen);
  EXPECT_NE(losses(0.3, 8, 0, 200), seen);
  EXPECT_NE(losses(0.3, 7 + (1ULL << 32), 0, 200), seen);
  EXPECT_NE(losses(0.3, 7, 1, 200), seen);
}

TEST(Line, LossesStrikeEachFrameByItself) {
  // After a loss the next is lost as often as any: no bursts.
  const std::string seen = losses(0.2, 3, 0, 100'000);
  std::string after_a_loss;
  for (std::size_t i = 1; i < seen.size(); ++i)
    if (seen[i - 1] == '1') after_a_loss += seen[i];
  EXPECT_NEAR(lost_share(after_a_loss), 0.2, 0.0113);
}

TEST(Line, WhatIsLostTakesNoRoomAndNoTime) {
  const std::size_t frames = 100;
  Line line{{.loss = 0.5, .rate_hz = 8'000'000, .limit = frames}, 0};
  std::size_t carried = 0;
  Clock::time_point last{};
  for (std::size_t i = 0; i < frames; ++i) {
    if (give(line, std::string(1000, 'x'), start) != Fate::carried) continue;
    ++carried;
  }
  ASSERT_EQ(line.held(), carried);
  for (; line.held() > 0; line.pop()) last = line.due();
  EXPECT_EQ(last, start + milliseconds{carried});
}

TEST(Line, WithARateFramesLeaveOneAfterTheOther) {
  Line line{{.delay = milliseconds{5}, .rate_hz = 8'000'000}, 0};  // a byte in a microsecond
  give(line, std::string(1000, 'a'), start);
  give(line, std::string(500, 'b'), start);
  give(line, std::string(100, 'c'), start + milliseconds{9});  // the link has been idle since
  std::vector<nanoseconds> due;
  for (; line.held() > 0; line.pop()) due.push_back(line.due() - start);
  EXPECT_EQ(due, (std::vector<nanoseconds>{microseconds{6000}, microseconds{6500}, microseconds{14100}}));
}

TEST(Line, DropsWhatComesWhileTooMuchWaitsForTheRate) {
  Line line{{.delay = milliseconds{100}, .rate_hz = 8'000'000, .queue_bytes = 2000}, 0};
  const std::string frame(1000, 'x');
  EXPECT_EQ(give(line, frame, start), Fate::carried);
  EXPECT_EQ(give(line, frame, start), Fate::carried);
  EXPECT_EQ(give(line, frame, start), Fate::queue_full);
  EXPECT_EQ(give(line, frame, start + milliseconds{1}), Fate::carried);  // the first is under way and waits no more
  EXPECT_EQ(give(line, frame, start + milliseconds{1}), Fate::queue_full);
  EXPECT_EQ(line.held(), 3U);
}

TEST(Line, ARateIsNeverExceeded) {
  Line line{{.rate_hz = 3'000'000'000}, 0};  // a byte takes 2.67 ns
  for (int i = 0; i < 1000; ++i) give(line, "x", start);
  Clock::time_point last{};
  for (; line.held() > 0; line.pop()) last = line.due();
  EXPECT_GE(last - start, nanoseconds{2667});
}

LinkPlan parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv{"./path/to/netdyno-link", "/run/netns/a", "/run/netns/b"};
  argv.insert(argv.end(), arguments);
  return parse_plan(static_cast<int>(argv.size()), argv.data());
}

TEST(LinkPlan, TakesTheTermsOfALink) {
  const auto plan = parse({"--interface", "wan0", "--delay", "20ms", "--loss", "0.01", "--rate", "10mbit", "--limit",
                           "500", "--queue", "16KiB", "--seed", "9"});
  EXPECT_EQ(plan.namespaces[0], "/run/netns/a");
  EXPECT_EQ(plan.namespaces[1], "/run/netns/b");
  EXPECT_EQ(plan.interface, "wan0");
  EXPECT_EQ(plan.terms.delay, milliseconds{20});
  EXPECT_EQ(plan.terms.loss, 0.01);
  EXPECT_EQ(plan.terms.rate_hz, 10'000'000U);
  EXPECT_EQ(plan.terms.limit, 500U);
  EXPECT_EQ(plan.terms.queue_bytes, 16384U);
  EXPECT_EQ(plan.terms.seed, 9U);
}

TEST(LinkPlan, SaysWhatCannotBeMeant) {
  EXPECT_EXIT(parse({"--loss", "1"}), ExitedWithCode(2), "--loss: '1' is no share from 0 to below 1");
  EXPECT_EXIT(parse({"--loss", "-0.1"}), ExitedWithCode(2), "--loss");
  EXPECT_EXIT(parse({"--loss", "1%"}), ExitedWithCode(2), "--loss");
  EXPECT_EXIT(parse({"--loss", "nan"}), ExitedWithCode(2), "--loss");
  EXPECT_EXIT(parse({"--delay", "20"}), ExitedWithCode(2), "--delay: '20' is no duration");
  EXPECT_EXIT(parse({"--delay", "11s"}), ExitedWithCode(2), "--delay: want at most 10s");
  EXPECT_EXIT(parse({"--rate", "0mbit"}), ExitedWithCode(2), "--rate: '0mbit' is no rate");
  EXPECT_EXIT(parse({"--limit", "0"}), ExitedWithCode(2), "--limit");
  EXPECT_EXIT(parse({"--interface", "sixteen-letters-"}), ExitedWithCode(2), "--interface: 'sixteen-letters-'");
  EXPECT_EXIT(parse({"--jitter", "1ms"}), ExitedWithCode(2), "--jitter");
}

TEST(LinkPlan, NeedsBothEnds) {
  const char* argv[] = {"netdyno-link", "/run/netns/a"};
  EXPECT_EXIT(parse_plan(2, argv), ExitedWithCode(2), "netdyno-link: b is required");
}

}  // namespace
}  // namespace netdyno::link
