// What reads one message: frames against a reader in other words, Protobuf, control messages, stamps.
#include <algorithm>
#include <cstring>

#include "lib/measure/stamp.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/protocol/handshake.hpp"
#include "lib/protocol/protobuf.hpp"
#include "tests/cpp/fuzz/fuzz.hpp"
#include "work.pb.h"

namespace netdyno::fuzz {
namespace {

std::vector<std::string> seeds() { return golden_streams(""); }

/// Frames one after the other, and a mark where the stream is broken: protocol/WIRE.md, word for word.
std::string by_the_book(std::string_view bytes, std::size_t limit) {
  std::string found;
  while (bytes.size() >= 4) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    if (length == 0 || length > limit) return found + "!";
    if (bytes.size() - 4 < length) break;
    found.append(bytes.substr(4, length)).push_back('|');
    bytes.remove_prefix(4 + length);
  }
  return found + (bytes.empty() ? "." : "...");
}

void read_frames(const Input& input) {
  const std::size_t limit = input.choice() & 1 ? 1 << 20 : 64;
  const std::size_t before = heap_in_use();
  forget_peak();
  FrameReader reader{limit};
  std::string found;
  bool good = true;
  input.each_piece([&](std::string_view piece) {
    good = reader.receive(piece, [&](std::string_view body) {
      found.append(body).push_back('|');
      return true;
    });
    return good;
  });
  found += !good ? "!" : reader.at_boundary() ? "." : "...";
  must(heap_peak() - before <= 1024 + 8 * input.rest().size(), "memory is bounded by the input");
  must(found == by_the_book(input.rest(), limit), "frames are cut as WIRE.md says");
}

void read_protobuf(const Input& input) {
  static wire::WorkMessage message, again;
  const auto bytes = input.rest();
  if (!parts_fit(bytes)) {
    const bool read = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    must(!read || message.SerializeAsString() != bytes, "a message as it is written has parts that fit");
    return;
  }
  const std::size_t before = heap_in_use();
  forget_peak();
  const bool good = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  must(heap_peak() - before <= (64 << 10) + 24 * bytes.size(), "memory is bounded by the input");
  if (!good) return;
  static std::string written, rewritten;
  must(message.SerializeToString(&written), "what was read can be written");
  must(again.ParseFromString(written), "what was written can be read");
  must(again.SerializeToString(&rewritten) && written == rewritten, "it is the same again");
}

void read_control(const Input& input) {
  const auto bytes = input.rest();
  const auto control = decode_control(bytes);
  if (control) {
    must(is_control(bytes), "what is read as control says that it is");
    const ControlBytes encoded = encode_control(*control);
    must(bytes == std::string_view(encoded.data(), encoded.size()), "a control message has one form");
  }
  for (const auto& [name, workload] : workloads()) {
    const bool is_message = is_one_message(workload, bytes);
    must(!is_message || !is_control(bytes) || workload == Workload::echo, "no message is a control message");
  }
}

void read_stamps(const Input& input) {
  const auto text = input.rest();
  const auto stamp = read_stamp(text);
  if (!stamp) return;
  std::string written;
  append_stamp(*stamp, std::max(text.size(), min_stamp_size), written);
  must(written.size() == text.size() && std::memcmp(written.data(), text.data(), 20) == 0, "a stamp says who it is");
}

std::vector<std::string> control_seeds() {
  auto streams = seeds();
  for (const auto kind : {ControlKind::hello, ControlKind::welcome, ControlKind::full, ControlKind::bye}) {
    const auto bytes = encode_control({kind, 0x0123456789abcdef});
    streams.push_back(std::string(1, '\0').append(bytes.data(), bytes.size()));
  }
  return streams;
}

std::vector<std::string> protobuf_seeds() {
  auto streams = golden_streams("rpc");
  for (std::string& stream : streams) stream.erase(1, std::min<std::size_t>(stream.size() - 1, frame_header_size));
  return streams;
}

std::vector<std::string> stamp_seeds() {
  std::vector<std::string> streams;
  for (const std::size_t size : {min_stamp_size, std::size_t{40}, std::size_t{300}})
    append_stamp({7, size}, size, streams.emplace_back(1, '\0'));
  return streams;
}

const Target framing{"framing", seeds, read_frames};
const Target protobuf{"protobuf", protobuf_seeds, read_protobuf};
const Target control{"control", control_seeds, read_control};
const Target stamps{"stamp", stamp_seeds, read_stamps};

}  // namespace
}  // namespace netdyno::fuzz
