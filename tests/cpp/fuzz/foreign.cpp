// The generator's decoders for servers that are not ours: WebSocket frames, and replies separated by their
// length.
#include <array>
#include <utility>

#include "loadgen/codec/codec.hpp"
#include "loadgen/codec/websocket_frame.hpp"
#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {
namespace {

constexpr std::size_t heap_beside = 16 << 10;
constexpr std::size_t heap_per_byte = 4;

struct Read {
  std::string data;
  std::vector<std::string> wrong;  // one at most
  std::string ping;
  std::string close;
  bool operator==(const Read&) const = default;
};

template <typename Feed>
Read read_of(Feed&& feed) {
  Read read;
  load::WebSocketReader frames;
  feed([&](std::string_view piece) {
    load::WebSocketReader::ControlFrames control;
    if (const char* wrong = frames.receive(piece, read.data, control)) read.wrong.emplace_back(wrong);
    if (control.ping) read.ping = *control.ping;
    if (control.close) read.close = "closed: " + *control.close;
    return read.wrong.empty() && !control.close;
  });
  return read;
}

void run_frames(const Input& input) {
  const std::size_t size = input.rest().size();
  const std::size_t before = heap_in_use();
  forget_peak();
  const Read whole = read_of([&](auto take) { take(input.rest()); });
  must(heap_peak() - before <= heap_beside + heap_per_byte * size, "memory is bounded by the input");
  must(whole.data.size() + whole.ping.size() <= size, "no more came than was sent");
  must(whole == read_of([&](auto take) { input.each_piece(take); }), "the same however the stream is cut");
}

std::vector<std::string> seeds_of_frames() {
  const std::string options(1, '\0');
  std::vector<std::string> streams;
  for (const std::size_t size : {0U, 5U, 125U, 126U, 700U}) {
    const std::string text(size, 'x');
    std::string head{"\x81"};
    if (size < 126) {
      head += static_cast<char>(size);
    } else {
      head += {'\x7e', static_cast<char>(size >> 8), static_cast<char>(size & 0xff)};
    }
    streams.push_back(options + head + text + "\x89\x01p" + head + text + std::string("\x88\x02\x03\xe8", 4));
  }
  streams.push_back(options + std::string("\x01\x01"
                                          "a"
                                          "\x00\x01"
                                          "b"
                                          "\x80\x00"
                                          "\x82\x7f\0\0\0\0\0\0\0\x03"
                                          "abc",
                                          21));
  return streams;
}

struct Decoded final : load::ReplySink {
  std::vector<std::pair<std::size_t, std::string>> replies;
  std::string why;
  bool at_boundary = true;
  void on_reply(const Stamp&, std::size_t) override {}
  void on_corrupt() override {}
  void on_plain(const load::PlainReply& reply) override { replies.emplace_back(reply.size, reply.body); }
  void on_broken(std::string_view words) override { why = words; }
  bool operator==(const Decoded& other) const {
    return replies == other.replies && why == other.why && (!why.empty() || at_boundary == other.at_boundary);
  }
};

constexpr std::array<std::string_view, 4> fields{"u8", "u32be@1-4", "u16le@2+3", "u64be"};

template <typename Feed>
Decoded decode(const load::Codec& codec, Feed&& feed) {
  Decoded decoded;
  const auto decoder = codec.make_decoder();
  feed([&](std::string_view piece) { return decoder->receive(piece, decoded); });
  decoded.at_boundary = decoder->at_boundary();
  return decoded;
}

void run_lengths(const Input& input) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<load::Codec>, fields.size()> made;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      load::LoadPlan plan;
      plan.url = {"tcp", "127.0.0.1", 7000, ""};
      plan.exchange.emplace().length = load::parse_length_field(fields[i]);
      made[i] = load::make_codec(plan);
    }
    return made;
  }();
  const auto& codec = *codecs[input.choice() & 3];
  const Decoded whole = decode(codec, [&](auto take) { take(input.rest()); });
  std::size_t bytes = 0;
  for (const auto& [size, body] : whole.replies) bytes += size;
  must(bytes <= input.rest().size(), "no more came than was sent");
  must(whole == decode(codec, [&](auto take) { input.each_piece(take); }), "the same however the stream is cut");
}

std::vector<std::string> seeds_of_lengths() {
  using namespace std::string_literals;
  return {
      "\0\x03"
      "abc"
      "\0\x01z"s,
      "\x01R\0\0\0\x08"
      "abcdZ\0\0\0\x04"s,
      "\x02xx\x02\0abcde"s,
      "\x03\0\0\0\0\0\0\0\x02"
      "ab\0\0\0\0\0\0\0\0"s};
}

const Target frames{"frames-websocket", seeds_of_frames, run_frames};
const Target lengths{"decoder-length", seeds_of_lengths, run_lengths};

}  // namespace
}  // namespace netdyno::fuzz
