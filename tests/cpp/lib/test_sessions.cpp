// Sessions against unforeseen streams: pieces of valid messages, damaged ones and noise, in any order and
// slicing. Run under the asan preset this is a fuzzer with a fixed budget.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "lib/server/options.hpp"
#include "lib/session/session.hpp"
#include "tests/cpp/lib/framed.hpp"
#include "tests/cpp/lib/slices.hpp"
#include "tests/cpp/property.hpp"
#include "work.pb.h"

namespace netdyno {
namespace {

constexpr std::size_t limit = 64;  // low, so that random streams come near it

std::string request(std::uint32_t job, std::int32_t workload, const std::string& stamp) {
  wire::WorkMessage message;
  message.mutable_request()->set_job_id(job);
  message.mutable_request()->set_workload(workload);
  message.mutable_request()->set_stamp(stamp);
  return message.SerializeAsString();
}

/// A piece of a stream that some workload takes for a message, or nearly.
std::string piece() {
  const auto text = draw::text_of({'a', 'b', '\n', '\r', '\0', ':', ' '});
  switch (draw::index(9)) {
    case 0:
      return text;
    case 1:
      return draw::text();
    case 2:
      return frame(text);
    case 3:
      return text + "\n";
    case 4:
      return "GET /x HTTP/1.1\r\nHost: x\r\n" +
             draw::one_of<std::string>({"", "Connection: close\r\n", "A: b\r\n", "Content-Length: 1\r\n", "bad\r\n"}) +
             "\r\n";
    case 8:
      return draw::one_of<std::string>({"GET /x?wait=7us&size=9", "GET /items", "POST /items", "GET /x?cpu=us"}) +
             " HTTP/1.1\r\nHost: x\r\n" + draw::one_of<std::string>({"", "Content-Length: 3\r\n"}) + "\r\nabc";
    case 5:  // near the limit
      return "GET /x HTTP/1.1\r\nHost: x\r\nA: " + std::string(limit - 44 + draw::index(30), 'x') + "\r\n\r\n";
    default:
      return frame(request(draw::any<std::uint32_t>(), draw::one_of({0, 1, -1, 10'000'000, 10'000'001}), text));
  }
}

/// A few pieces in a row, sometimes with one byte damaged.
std::string stream() {
  std::string all;
  for (const auto& part : draw::many(piece)) all += part;
  if (draw::any<bool>() && !all.empty()) all[draw::index(all.size())] = draw::any<char>();
  return all;
}

ServerOptions options() {
  ServerOptions made;
  made.workload =
      draw::one_of({Workload::echo, Workload::lines, Workload::rpc, Workload::chat, Workload::http, Workload::web});
  made.write_mode = draw::one_of({WriteMode::gathered, WriteMode::split});
  made.service_time = std::chrono::milliseconds{draw::one_of({0, 7})};
  made.max_frame = limit;
  return made;
}

/// The outcome of a stream, in a form that does not depend on how often the server read.
struct Outcome {
  std::vector<std::string> effects;
  std::uint64_t protocol_errors = 0;
  bool closed = false;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  for (const auto& effect : outcome.effects) out << '[' << effect << ']';
  return out << " errors " << outcome.protocol_errors << (outcome.closed ? " closed" : "");
}

class Run {
 public:
  explicit Run(const ServerOptions& options)
      : may_join_{options.write_mode == WriteMode::gathered || options.workload == Workload::echo},
        session_{make_session(options, counters_)},
        effects_{options.write_mode} {}

  void receive(std::string_view bytes) {
    session_->receive(bytes, effects_);
    take();
  }

  Outcome end() {
    session_->end(effects_);
    take();
    outcome_.protocol_errors = counters_.totals().protocol_errors;
    return outcome_;
  }

  const Outcome& outcome() const { return outcome_; }

 private:
  void take() {
    for (const Effect& effect : effects_) {
      RC_ASSERT(!outcome_.closed);  // nothing follows a close
      add(effect);
    }
    effects_.clear();
  }

  void add(const Effect& effect) {
    switch (effect.kind) {
      case Effect::Kind::write:
        RC_ASSERT(effect.size > 0U);
        return add_write(std::string{effects_.bytes(effect)});
      case Effect::Kind::broadcast:
        return outcome_.effects.push_back("broadcast " + effect.frame->bytes);
      case Effect::Kind::wait:
      case Effect::Kind::burn:
        RC_ASSERT(effect.duration.count() > 0);
        return outcome_.effects.push_back("serve " + std::to_string(effect.duration.count()));
      case Effect::Kind::close:
        outcome_.closed = true;
    }
  }

  void add_write(std::string bytes) {
    const bool joins = may_join_ && !outcome_.effects.empty() && outcome_.effects.back().starts_with("write ");
    if (joins) {
      outcome_.effects.back() += bytes;
    } else {
      outcome_.effects.push_back("write " + std::move(bytes));
    }
  }

  Counters counters_;
  bool may_join_;
  std::unique_ptr<Session> session_;
  Effects effects_;
  Outcome outcome_;
};

PROPERTY(Sessions, SlicingChangesNothing) {
  const auto chosen = options();
  const auto bytes = stream();
  Run whole{chosen};
  whole.receive(bytes);
  Run sliced{chosen};
  for (const auto slice : any_slicing(bytes)) sliced.receive(slice);
  RC_ASSERT(sliced.outcome() == whole.outcome());
  RC_ASSERT(sliced.end() == whole.end());
}

PROPERTY(Sessions, SwallowNoMoreThanTheLimitInSilence) {
  auto chosen = options();
  chosen.workload = draw::one_of({Workload::lines, Workload::rpc, Workload::chat, Workload::http});
  const auto bytes = stream() + draw::one_of({std::string{}, std::string(200, 'x'), std::string(200, '\0')});
  Run run{chosen};
  std::size_t silent = 0;
  for (const auto slice : any_slicing(bytes)) {
    const auto before = run.outcome().effects;
    run.receive(slice);
    if (run.outcome().closed) return;
    silent = run.outcome().effects == before ? silent + slice.size() : 0;  // what came behind the answer is not known
    RC_ASSERT(silent <= 200U + limit + frame_header_size);
  }
}

PROPERTY(Sessions, EndClosesAndIsTheEnd) {
  Run run{options()};
  run.receive(stream());
  RC_ASSERT(run.end().closed);
  const Outcome before = run.outcome();
  run.receive(stream());
  RC_ASSERT(run.end() == before);
}

PROPERTY(Sessions, EchoAndLinesReturnWhatCame) {
  const auto bytes = stream();
  auto chosen = options();
  chosen.workload = draw::one_of({Workload::echo, Workload::lines});
  chosen.write_mode = WriteMode::gathered;
  chosen.max_frame = bytes.size() + 1;
  Run run{chosen};
  for (const auto slice : any_slicing(bytes)) run.receive(slice);
  const Outcome outcome = run.end();
  RC_ASSERT(outcome.effects == (bytes.empty() ? std::vector<std::string>{} : std::vector{"write " + bytes}));
  RC_ASSERT(outcome.protocol_errors == 0U);
}

/// libprotobuf would reserve 50 MB for a text in a request that announces more than the frame has (tests/cpp/fuzz found
/// it), and the session would keep them.
TEST(Sessions, RpcBelievesNoLengthBeyondTheFrame) {
  ServerOptions chosen;
  chosen.workload = Workload::rpc;
  netdyno::Run run{chosen};  // not testing::Test::Run
  const auto heap = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const auto before = heap();
  run.receive(frame("\x0a\xff\xff\xff\xff\x01\x1a\xdd\xdd\xdd\x01"));
  EXPECT_TRUE(run.outcome().closed);
  EXPECT_LT(heap(), before + (1 << 20));
}

PROPERTY(Sessions, RpcAnswersEveryRequest) {
  const auto jobs = draw::many(draw::any<std::uint32_t>);
  ServerOptions chosen;
  chosen.workload = Workload::rpc;
  std::string bytes;
  for (const auto job : jobs) bytes += frame(request(job, 0, std::to_string(job)));
  Run run{chosen};
  for (const auto slice : any_slicing(bytes)) run.receive(slice);
  std::string replies = run.outcome().effects.empty() ? "" : run.outcome().effects.at(0).substr(6);
  FrameReader reader{1 << 20};
  std::vector<std::uint32_t> answered;
  reader.receive(replies, [&](std::string_view body) {
    wire::WorkMessage message;
    RC_ASSERT(message.ParseFromArray(body.data(), static_cast<int>(body.size())));
    RC_ASSERT(message.response().is_complete());
    RC_ASSERT(message.response().stamp() == std::to_string(message.response().job_id()));
    answered.push_back(message.response().job_id());
    return true;
  });
  RC_ASSERT(answered == jobs);
}

/// The effects of one request of web, each in words, and whether it was refused.
std::vector<std::string> effects_of_web(const std::string& first_line, const std::string& rest = "") {
  ServerOptions chosen;
  chosen.workload = Workload::web;
  Counters counters;
  const auto session = make_session(chosen, counters);
  Effects effects{WriteMode::split};
  session->receive(first_line + " HTTP/1.1\r\nHost: x\r\n" + rest, effects);
  std::vector<std::string> words;
  for (const Effect& effect : effects) {
    using enum Effect::Kind;
    if (effect.kind == write) words.emplace_back(effects.bytes(effect));
    if (effect.kind == wait) words.push_back("wait " + std::to_string(effect.duration.count()));
    if (effect.kind == burn) words.push_back("burn " + std::to_string(effect.duration.count()));
    if (effect.kind == close) words.emplace_back("close");
  }
  std::erase_if(words, [](const std::string& word) { return word.starts_with("HTTP/1.1 200"); });
  return words;
}

using Words = std::vector<std::string>;

TEST(WebSession, WaitsThenComputesThenFillsItsReply) {
  EXPECT_EQ(effects_of_web("GET /stamp?wait=500us&cpu=20us&size=8", "\r\n"),
            (Words{"wait 500000", "burn 20000", "stampxxx"}));
  EXPECT_EQ(effects_of_web("GET /stamp?size=2", "\r\n"), Words{"stamp"}) << "the stamp is whole";
  EXPECT_EQ(effects_of_web("GET /stamp", "\r\n"), Words{"stamp"});
}

TEST(WebSession, ListsItemsAndCountsABody) {
  const auto list = effects_of_web("GET /items", "\r\n");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_TRUE(list[0].starts_with("[{\"id\":1,"));
  EXPECT_EQ(effects_of_web("POST /items", "Content-Length: 5\r\n\r\nhello"), Words{"5"});
  EXPECT_EQ(effects_of_web("POST /items", "Content-Length: 5\r\n\r\nhell"), Words{}) << "the body is not whole";
}

TEST(WebSession, RefusesWhatItCannotRead) {
  for (const auto* line : {"GET /stamp?wait=5ms", "GET /stamp?size=x", "GET /stamp?wait=us", "GET /stamp?size=2000000",
                           "GET /stamp?wait=10000001us", "POST /stamp"}) {
    const auto words = effects_of_web(line, "\r\n");
    ASSERT_EQ(words.size(), 2U) << line;
    EXPECT_TRUE(words[0].starts_with("HTTP/1.1 400")) << line;
    EXPECT_EQ(words[1], "close") << line;
  }
  EXPECT_EQ(effects_of_web("POST /items", "Content-Length: 2000000\r\n\r\n").back(), "close");
}

}  // namespace
}  // namespace netdyno
