// The generator's decoders: they find the same replies however the stream is cut, and none that were not sent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "loadgen/codec/codec.hpp"
#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {
namespace {

constexpr std::array<std::size_t, 4> sizes{40, 29, 300, 1000};
constexpr std::size_t heap_beside = 128 << 10;
constexpr std::size_t heap_per_byte = 24;

struct Seen final : load::ReplySink {
  std::vector<Stamp> stamps;
  std::size_t replies_hash = 0;  // the text of a reply of one byte would be longer than the bound on memory
  std::size_t bytes = 0;
  std::size_t corrupted = 0;
  bool broken = false;
  bool at_boundary = false;
  void on_reply(const Stamp& stamp, std::size_t size) override {
    stamps.push_back(stamp);
    bytes += size;
  }
  void on_corrupt() override { ++corrupted; }
  void on_plain(const load::PlainReply& reply) override {
    bytes += reply.size;
    replies_hash =
        std::hash<std::string>{}(fmt::format("{} {} {} {} {} {} {} {}", replies_hash, reply.size, reply.status,
                                             reply.reason, reply.length, reply.digest, reply.body, reply.last));
  }
  bool is_good() const { return !broken && at_boundary; }
  bool operator==(const Seen& other) const {
    return stamps == other.stamps && replies_hash == other.replies_hash && bytes == other.bytes &&
           corrupted == other.corrupted && broken == other.broken && (broken || at_boundary == other.at_boundary);
  }
};

std::unique_ptr<load::Codec> codec_of(Workload workload, std::size_t size) {
  load::LoadPlan plan;
  plan.url = {"tcp", "127.0.0.1", 7000, ""};
  plan.workload = workload;
  plan.size = size;
  return load::make_codec(plan);
}

template <typename Feed>
Seen seen_of(const load::Codec& codec, Feed&& feed) {
  Seen seen;
  const auto decoder = codec.make_decoder();
  feed([&](std::string_view piece) {
    seen.broken = !decoder->receive(piece, seen);
    return !seen.broken;
  });
  if (!seen.broken) decoder->end(seen);
  seen.at_boundary = decoder->at_boundary();
  return seen;
}

void try_on(const load::Codec& codec, const Input& input, bool may_wait = false) {
  const std::size_t size = input.rest().size();
  const std::size_t before = heap_in_use();
  forget_peak();
  const Seen whole = seen_of(codec, [&](auto take) { take(input.rest()); });
  must(heap_peak() - before <= heap_beside + heap_per_byte * size, "memory is bounded by the input");
  must(whole.bytes <= size, "no more came than was sent");
  const Seen cut = seen_of(codec, [&](auto take) { input.each_piece(take); });
  if (may_wait) {
    // Boost.Beast says of half a head that it is bad, or waits for the rest of it.
    must(whole.is_good() == cut.is_good() && whole.replies_hash == cut.replies_hash,
         "the replies are the same however the stream is cut");
    return;
  }
  must(whole == cut, "the replies are the same however the stream is cut");
}

template <Workload workload>
void run(const Input& input) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<load::Codec>, sizes.size()> made;
    for (std::size_t i = 0; i < sizes.size(); ++i) made[i] = codec_of(workload, sizes[i]);
    return made;
  }();
  try_on(*codecs[input.choice() & 3], input);
}

/// Decodes replies of servers that are not ours: every check of a reply, also where only its head comes.
void run_foreign_http(const Input& input) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<load::Codec>, 8> made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      load::LoadPlan plan;
      plan.url = {"tcp", "127.0.0.1", 7000, ""};
      plan.http.emplace();
      plan.http->method = i & 4 ? "HEAD" : "GET";
      plan.http->targets = {"/"};
      plan.http->check = static_cast<load::Check>(i & 3);
      made[i] = load::make_codec(plan);
    }
    return made;
  }();
  try_on(*codecs[input.choice() & 7], input, true);
}

void run_exchange(const Input& input) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<load::Codec>, 4> made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      load::LoadPlan plan;
      plan.exchange = load::Exchange{.send = "PING", .expect = "x"};
      plan.exchange->until = std::array{"\n", "\r\n\r\n", "\r\r\n", "\n"}[i];
      plan.exchange->size = i == 3 ? 7 : 0;
      made[i] = load::make_codec(plan);
    }
    return made;
  }();
  try_on(*codecs[input.choice() & 3], input);
}

/// Replies in the generator's own bytes, for a stamp is not found by chance. What http answers is not what it is asked.
template <Workload workload>
std::vector<std::string> seeds() {
  std::vector<std::string> streams = golden_streams(to_string(workload));
  for (std::size_t choice = 0; choice < sizes.size(); ++choice) {
    std::string stream(1, static_cast<char>(choice));
    for (std::uint64_t number = 0; number < 3; ++number) {
      if constexpr (workload == Workload::http || workload == Workload::web) {
        std::string body = workload == Workload::http ? "/" : "";
        append_stamp({7, number}, workload == Workload::http ? sizes[choice] : min_stamp_size, body);
        body.resize(std::max(body.size(), sizes[choice]), 'x');
        stream += "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
                  "\r\n\r\n" + body;
      } else {
        codec_of(workload, sizes[choice])->encode({7, number}, stream);
      }
    }
    streams.push_back(stream);
  }
  if constexpr (workload == Workload::rpc) {
    std::string stamp;
    append_stamp({7, 1}, sizes[0], stamp);
    const std::string response = "\x08\x01\x10\x01\x1a\x28" + stamp;
    const std::string body = std::string("\x12") + static_cast<char>(response.size()) + response;
    streams.push_back(std::string("\0\0\0\0", 4) + static_cast<char>(body.size()) + body);
  }
  return streams;
}

std::vector<std::string> foreign_seeds() {
  auto streams = seeds<Workload::http>();
  for (const std::string reply :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end", "+PONG\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n\r\n"})
    for (char choice = 0; choice < 8; ++choice) streams.push_back(choice + reply);
  return streams;
}

const Target lines{"decoder-lines", seeds<Workload::lines>, run<Workload::lines>};
const Target rpc{"decoder-rpc", seeds<Workload::rpc>, run<Workload::rpc>};
const Target chat{"decoder-chat", seeds<Workload::chat>, run<Workload::chat>};
const Target http{"decoder-http", seeds<Workload::http>, run<Workload::http>};
const Target web{"decoder-web", seeds<Workload::web>, run<Workload::web>};
const Target foreign_http{"decoder-foreign-http", foreign_seeds, run_foreign_http};
const Target exchange{"decoder-exchange", foreign_seeds, run_exchange};

}  // namespace
}  // namespace netdyno::fuzz
