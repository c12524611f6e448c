// Each codec against the session that servers use: what is encoded, served and decoded is verified, however it is cut.
#include "loadgen/codec/codec.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "lib/server/options.hpp"
#include "lib/session/session.hpp"
#include "loadgen/match/stream_reader.hpp"
#include "tests/cpp/property.hpp"
#include "work.pb.h"

namespace netdyno::load {
namespace {

constexpr std::initializer_list<Workload> all_workloads{Workload::echo, Workload::lines, Workload::rpc,
                                                        Workload::chat, Workload::http,  Workload::web};

struct Seen final : ReplySink {
  std::vector<Stamp> stamps;
  std::size_t bytes = 0;
  std::size_t corrupted = 0;
  void on_reply(const Stamp& stamp, std::size_t size) override {
    stamps.push_back(stamp);
    bytes += size;
  }
  void on_corrupt() override { ++corrupted; }
  void on_chunk(const Stamp& stamp, std::uint64_t number) override { chunks.emplace_back(stamp.sequence, number); }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks;
};

LoadPlan plan_of(Workload workload, std::size_t size) {
  LoadPlan plan;
  plan.url = {"tcp", "127.0.0.1", 7000, ""};
  plan.workload = workload;
  plan.size = size;
  return plan;
}

/// The replies of a server to `requests`.
std::string served(Workload workload, std::string_view requests) {
  ServerOptions options;
  options.workload = workload;
  Counters counters;
  const auto session = make_session(options, counters);
  Effects effects{WriteMode::gathered};
  session->receive(requests, effects);
  std::string replies;
  for (const Effect& effect : effects) {
    if (effect.kind == Effect::Kind::write) replies += effects.bytes(effect);
    if (effect.kind == Effect::Kind::broadcast) replies += effect.frame->bytes;
  }
  EXPECT_EQ(counters.totals().protocol_errors, 0U);
  return replies;
}

/// Hands `bytes` over in pieces of random size. False when the decoder gave up.
bool receive_in_pieces(Decoder& decoder, std::string_view bytes, ReplySink& sink) {
  while (!bytes.empty()) {
    const auto n = draw::between<std::size_t>(1, bytes.size() + 1);
    if (!decoder.receive(bytes.substr(0, n), sink)) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

struct Conversation {
  std::vector<Stamp> stamps;
  std::string requests;
  std::string replies;
  std::size_t expected_bytes = 0;
};

Conversation converse(Codec& codec, Workload workload) {
  Conversation talk;
  const auto first = draw::between<std::uint64_t>(0, 1'000'000'000);
  const auto count = draw::between<std::uint64_t>(1, 8);
  for (std::uint64_t i = 0; i < count; ++i) {
    talk.stamps.push_back({7, first + i});
    codec.encode(talk.stamps.back(), talk.requests);
    talk.expected_bytes += codec.reply_size(talk.stamps.back()).value_or(0);
  }
  talk.replies = served(workload, talk.requests);
  return talk;
}

PROPERTY(Codec, VerifiesWhatAServerAnswersHoweverItIsCut) {
  const auto workload = draw::one_of(all_workloads);
  const auto codec = make_codec(plan_of(workload, draw::between<std::size_t>(29, 300)));
  const Conversation talk = converse(*codec, workload);

  Seen seen;
  RC_ASSERT(receive_in_pieces(*codec->make_decoder(), talk.replies, seen));
  RC_ASSERT(seen.stamps == talk.stamps);
  RC_ASSERT(seen.corrupted == 0U);
  RC_ASSERT(seen.bytes == talk.replies.size());
  if (!speaks_http(workload)) RC_ASSERT(talk.expected_bytes == talk.replies.size());
}

PROPERTY(Codec, NeverTakesAChangedByteForAnotherMessage) {
  const auto workload = draw::one_of(all_workloads);
  const auto codec = make_codec(plan_of(workload, draw::between<std::size_t>(29, 100)));
  Conversation talk = converse(*codec, workload);
  const auto position = draw::between<std::size_t>(0, talk.replies.size());
  talk.replies[position] = static_cast<char>(talk.replies[position] ^ draw::between(1, 256));

  Seen seen;
  receive_in_pieces(*codec->make_decoder(), talk.replies, seen);
  for (const Stamp& stamp : seen.stamps) RC_ASSERT(std::ranges::count(talk.stamps, stamp) == 1);
  // A reason phrase or another header of HTTP may change without harm, and so may the varint of rpc's `is_complete`,
  // true by any number but 0; everything else costs at least one message.
  const bool has_harmless_bytes = speaks_http(workload) || workload == Workload::rpc;
  if (!has_harmless_bytes) RC_ASSERT(seen.stamps.size() < talk.stamps.size());
}

PROPERTY(StreamReader, KeepsTheStreamsApartHoweverTheyAreCutAndMixed) {
  const auto workload = draw::one_of(all_workloads);
  const auto codec = make_codec(plan_of(workload, draw::between<std::size_t>(29, 300)));
  struct Stream {
    Conversation talk;
    std::string_view left;
    std::unique_ptr<Decoder> own;
    Seen seen;
  };
  std::vector<Stream> streams(3);
  for (Stream& stream : streams) stream.talk = converse(*codec, workload);
  for (Stream& stream : streams) stream.left = stream.talk.replies;

  std::mt19937_64 random{draw::any<std::uint32_t>()};
  StreamReader reader{*codec};
  const auto unread = [](const Stream& stream) { return !stream.left.empty(); };
  while (std::ranges::any_of(streams, unread)) {
    Stream& stream = streams[random() % streams.size()];
    const std::size_t n = std::min(stream.left.size(), random() % 200);
    if (n == 0) continue;
    RC_ASSERT(reader.receive(stream.own, stream.left.substr(0, n), stream.seen));
    stream.left.remove_prefix(n);
    const bool own_without_need = stream.own && stream.own->at_boundary();  // RC_ASSERT evaluates both sides of &&
    RC_ASSERT(!own_without_need);
  }
  for (const Stream& stream : streams) {
    RC_ASSERT(stream.seen.stamps == stream.talk.stamps);
    RC_ASSERT(stream.seen.corrupted == 0U);
    RC_ASSERT(!stream.own);
  }
}

TEST(StreamReader, GoesOnWithAFreshDecoderWhereAStreamWasBroken) {
  const auto codec = make_codec(plan_of(Workload::chat, 64));
  StreamReader reader{*codec};
  std::unique_ptr<Decoder> broken;
  std::unique_ptr<Decoder> sound;
  Seen seen;
  EXPECT_FALSE(reader.receive(broken, std::string(4, '\xff') + "rest", seen));
  std::string message;
  codec->encode({1, 2}, message);
  EXPECT_TRUE(reader.receive(sound, message, seen));
  EXPECT_EQ(seen.stamps, (std::vector<Stamp>{{1, 2}}));
}

PROPERTY(Codec, LivesThroughGarbage) {
  const auto garbage = draw::text();
  const auto workload = draw::one_of(all_workloads);
  const auto codec = make_codec(plan_of(workload, 64));
  Seen seen;
  receive_in_pieces(*codec->make_decoder(), garbage, seen);
  RC_ASSERT(seen.stamps.empty());
}

TEST(LineCodec, FindsTheNextMessageAfterOneThatWasCutShort) {
  const auto codec = make_codec(plan_of(Workload::echo, 31));
  std::string bytes;
  for (std::uint64_t i = 0; i < 3; ++i) codec->encode({0, i}, bytes);
  bytes.erase(31 + 10, 5);
  Seen seen;
  codec->make_decoder()->receive(bytes, seen);
  EXPECT_EQ(seen.stamps, (std::vector<Stamp>{{0, 0}, {0, 2}}));
  EXPECT_EQ(seen.corrupted, 1U);
}

TEST(LineCodec, CountsAnEndlessLineOnceAndKeepsNothingOfIt) {
  const auto codec = make_codec(plan_of(Workload::echo, 31));
  const auto decoder = codec->make_decoder();
  Seen seen;
  const std::string piece(1000, 'x');
  for (int i = 0; i < 100; ++i) decoder->receive(piece, seen);
  std::string bytes = "\n";
  codec->encode({0, 9}, bytes);
  decoder->receive(bytes, seen);
  EXPECT_EQ(seen.corrupted, 1U);
  EXPECT_EQ(seen.stamps, (std::vector<Stamp>{{0, 9}}));
}

TEST(Codec, BreaksOffAStreamWhoseFramingIsWrong) {
  Seen seen;
  const auto bad = [&](Workload workload, std::string_view bytes) {
    return make_codec(plan_of(workload, 64))->make_decoder()->receive(bytes, seen);
  };
  using namespace std::string_view_literals;
  EXPECT_FALSE(bad(Workload::chat, "\0\0\0\0"sv));
  EXPECT_FALSE(bad(Workload::chat, "\0\0\0\x41"sv)) << "longer than anybody sends";
  EXPECT_FALSE(bad(Workload::rpc, "\xff\xff\xff\xff"sv));
  EXPECT_FALSE(bad(Workload::http, "SSH-2.0-OpenSSH\r\n\r\n"sv));
  EXPECT_FALSE(bad(Workload::http, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n"sv)) << "no length";
  EXPECT_FALSE(bad(Workload::http, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"sv));
  EXPECT_EQ(seen.corrupted, 0U);
}

TEST(RpcCodec, RefusesAnswersThatAreNotComplete) {
  const auto codec = make_codec(plan_of(Workload::rpc, 40));
  std::string request;
  codec->encode({7, 3}, request);
  std::string reply = served(Workload::rpc, request);
  const auto complete = reply.find("\x10\x01", 4);  // field 2, is_complete: true
  ASSERT_NE(complete, std::string::npos);
  reply[complete + 1] = 0;
  Seen seen;
  codec->make_decoder()->receive(reply, seen);
  EXPECT_EQ(seen.corrupted, 1U);
  EXPECT_TRUE(seen.stamps.empty());
}

/// The stamps, of a thousand of two clients, whose requests ask for the slow time.
std::vector<Stamp> slow_stamps(std::uint64_t seed, double share) {
  LoadPlan plan = plan_of(Workload::rpc, 40);
  plan.seed = seed;
  plan.service_us = 20;
  plan.slow_requests = share;
  plan.slow_request_us = 50'000;
  const auto codec = make_codec(plan);
  std::vector<Stamp> slow;
  for (std::uint32_t client : {1U, 2U})
    for (std::uint64_t sequence = 0; sequence < 500; ++sequence) {
      std::string frame;
      const std::size_t header = codec->encode({client, sequence}, frame);
      wire::WorkMessage message;
      EXPECT_TRUE(message.ParseFromString(frame.substr(header)));
      if (message.request().workload() != 20) {
        EXPECT_EQ(message.request().workload(), 50'000);
        slow.push_back({client, sequence});
      }
    }
  return slow;
}

TEST(RpcCodec, AsksTheSlowTimeOfTheSameShareOfRequestsWhicheverServerAnswers) {
  const std::vector<Stamp> slow = slow_stamps(1, 0.1);
  EXPECT_GT(slow.size(), 60U);
  EXPECT_LT(slow.size(), 140U);
  EXPECT_EQ(slow, slow_stamps(1, 0.1));
  EXPECT_NE(slow, slow_stamps(2, 0.1));
  EXPECT_GT(std::ranges::count(slow, 1U, &Stamp::client), 20);
  EXPECT_GT(std::ranges::count(slow, 2U, &Stamp::client), 20);
  EXPECT_TRUE(slow_stamps(1, 0).empty());
}

TEST(HttpCodec, CountsAnotherStatusAsCorrupt) {
  const auto codec = make_codec(plan_of(Workload::http, 40));
  Seen seen;
  const auto decoder = codec->make_decoder();
  EXPECT_TRUE(decoder->receive("HTTP/1.1 503 Busy\r\ncontent-length:  4 \r\n\r\nbusy", seen));
  EXPECT_EQ(seen.corrupted, 1U);
}

std::string encoded_by(const LoadPlan& plan) {
  std::string request;
  make_codec(plan)->encode({42, 7}, request);
  return request;
}

TEST(WebCodec, AsksForTimeAndSizeBehindTheStamp) {
  auto plan = plan_of(Workload::web, 2048);
  std::string stamp;
  append_stamp({42, 7}, min_stamp_size, stamp);
  const std::string end = "size=2048 HTTP/1.1\r\nHost: 127.0.0.1:7000\r\n\r\n";
  EXPECT_EQ(encoded_by(plan), "GET /" + stamp + "?" + end);
  plan.service_us = 500;
  EXPECT_EQ(encoded_by(plan), "GET /" + stamp + "?wait=500us&" + end);
  plan.service_kind = ServiceKind::cpu;
  EXPECT_EQ(encoded_by(plan), "GET /" + stamp + "?cpu=500us&" + end);
}

TEST(WebCodec, TakesNoReplyThatIsNotTheStampFilledToTheSize) {
  const auto codec = make_codec(plan_of(Workload::web, 40));
  std::string stamp, other;
  append_stamp({42, 7}, min_stamp_size, stamp);
  append_stamp({42, 8}, min_stamp_size, other);
  other.back() = other.back() == '0' ? '1' : '0';
  const std::string filling(40 - min_stamp_size, 'x');
  for (const auto& [body, right] : {std::pair{stamp + filling, true},
                                    {stamp + filling + "x", false},
                                    {stamp, false},
                                    {stamp + filling.substr(1) + "y", false},
                                    {stamp + "y" + filling.substr(1), false},
                                    {other + filling, false}}) {
    Seen seen;
    const auto reply = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_TRUE(codec->make_decoder()->receive(reply, seen));
    EXPECT_EQ(seen.stamps.size(), right ? 1U : 0U) << body;
    EXPECT_EQ(seen.corrupted, right ? 0U : 1U) << body;
  }
}

LoadPlan stream_plan() {
  auto plan = plan_of(Workload::web, 40);
  plan.chunks = 3;
  plan.every = 20'000;
  return plan;
}

TEST(StreamCodec, AsksForChunksAndFindsThemHoweverTheirStreamsAreCut) {
  const auto plan = stream_plan();
  const std::string request = encoded_by(plan);
  EXPECT_NE(request.find("?chunks=3&every=20us&size=40 HTTP/1.1"), std::string::npos) << request;
  const auto codec = make_codec(plan);
  std::string requests;
  for (const std::uint64_t sequence : {7U, 8U}) codec->encode({42, sequence}, requests);
  const std::string replies = served(Workload::web, requests);
  for (std::size_t size = 1; size < replies.size(); ++size) {
    Seen seen;
    const auto decoder = codec->make_decoder();
    for (std::size_t at = 0; at < replies.size(); at += size)
      ASSERT_TRUE(decoder->receive(std::string_view{replies}.substr(at, size), seen)) << size;
    EXPECT_EQ(seen.stamps, (std::vector<Stamp>{{42, 7}, {42, 8}}));
    EXPECT_EQ(seen.chunks.size(), 6U);
    EXPECT_EQ(seen.chunks.back(), std::pair(std::uint64_t{8}, std::uint64_t{2}));
    EXPECT_EQ(seen.bytes, replies.size());
    EXPECT_TRUE(decoder->at_boundary());
  }
}

/// As HTTP/1.1 does, in other chunks than those of the server, with a letter changed.
TEST(StreamCodec, TakesAStreamInOtherPiecesAndNoneThatIsWrong) {
  const auto codec = make_codec(stream_plan());
  std::string stamp;
  append_stamp({42, 7}, min_stamp_size, stamp);
  const auto event = [&](int number) { return "data: " + stamp + "000" + std::to_string(number) + "xxxxxxxx\n\n"; };
  const std::string right = event(0) + event(1) + event(2);
  std::string filled = right;
  filled[filled.size() - 3] = 'y';
  for (const auto& [events, expected] : {std::pair{right, true},
                                         {event(0) + event(1), false},
                                         {right + event(3), false},
                                         {event(0) + event(2) + event(1), false},
                                         {filled, false},
                                         {"x" + right.substr(1), false}}) {
    for (const std::size_t piece : {std::size_t{5}, std::size_t{64}, events.size()}) {
      std::string reply = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n";
      for (std::size_t at = 0; at < events.size(); at += piece) {
        const auto part = events.substr(at, piece);
        reply += fmt::format("{:X};last=no\r\n{}\r\n", part.size(), part);
      }
      Seen seen;
      const bool goes_on = codec->make_decoder()->receive(reply + "0\r\n\r\n", seen);
      EXPECT_EQ(goes_on && seen.stamps.size() == 1 && seen.corrupted == 0, expected) << reply;
    }
  }
}

TEST(StreamCodec, RefusesWhatIsNoStream) {
  const auto codec = make_codec(stream_plan());
  for (const std::string reply :
       {"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndatax\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n"}) {
    Seen seen;
    EXPECT_FALSE(codec->make_decoder()->receive(reply, seen)) << reply;
  }
}

TEST(HttpCodec, RefusesAHeadAboveItsLimitHoweverItIsCut) {
  const auto codec = make_codec(plan_of(Workload::http, 40));
  for (const std::size_t excess : {0U, 1U}) {
    std::string reply = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: ";
    reply.append((16 << 10) + excess - reply.size(), 'x').append("\r\n\r\nbody");
    Seen whole, cut;
    EXPECT_EQ(codec->make_decoder()->receive(reply, whole), excess == 0);
    const auto decoder = codec->make_decoder();
    const std::string_view bytes{reply};
    const bool goes_on = decoder->receive(bytes.substr(0, bytes.size() - 5), cut);
    EXPECT_EQ(goes_on && decoder->receive(bytes.substr(bytes.size() - 5), cut), excess == 0);
    EXPECT_EQ(whole.corrupted, cut.corrupted);
  }
}

TEST(Codec, SplitsAfterTheHeader) {
  std::string bytes;
  EXPECT_EQ(make_codec(plan_of(Workload::chat, 64))->encode({1, 1}, bytes), 4U);
  EXPECT_EQ(make_codec(plan_of(Workload::rpc, 64))->encode({1, 1}, bytes), 4U);
  EXPECT_EQ(make_codec(plan_of(Workload::echo, 64))->encode({1, 1}, bytes), 0U);
}

/// The bytes in place of {random:N}, from a thread that has sent nothing before.
std::string chance(std::string_view send, const Stamp& stamp) {
  LoadPlan plan;
  plan.exchange.emplace().send = send;
  std::string bytes;
  make_codec(plan)->encode(stamp, bytes);
  return bytes;
}

TEST(Codec, RandomPlacesDifferAmongThreadsAndMessagesAndAreTheSameWhenAMessageIsSentAgain) {
  std::set<std::string> numbers;
  for (std::uint32_t client = 0; client < 10; ++client)
    for (std::uint64_t sequence = 0; sequence < 10; ++sequence) {
      const std::string bytes = chance("{random:1000000000000} {random:1000000000000}", {client, sequence});
      EXPECT_EQ(bytes, chance("{random:1000000000000} {random:1000000000000}", {client, sequence}));
      numbers.insert(bytes.substr(0, bytes.find(' ')));
      numbers.insert(bytes.substr(bytes.find(' ') + 1));
    }
  EXPECT_EQ(numbers.size(), 200U);
  std::set<std::string> digits;
  for (std::uint64_t sequence = 0; sequence < 200; ++sequence) digits.insert(chance("{random:10}", {0, sequence}));
  EXPECT_EQ(digits.size(), 10U);
}

}  // namespace
}  // namespace netdyno::load
