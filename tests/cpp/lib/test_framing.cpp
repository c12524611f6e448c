#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "tests/cpp/lib/framed.hpp"
#include "tests/cpp/lib/slices.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

TEST(FrameHeader, IsInNetworkByteOrder) {
  const auto header = encode_frame_header(0x01020304);
  EXPECT_EQ(std::string(header.data(), header.size()), "\x01\x02\x03\x04");
}

PROPERTY(FrameHeader, RoundTrips) {
  const auto size = draw::any<std::uint32_t>();
  RC_ASSERT(decode_frame_header(encode_frame_header(size).data()) == size);
}

std::vector<std::string> some_bodies() {
  return draw::many([] { return draw::bytes(draw::count(1)); });
}

PROPERTY(FrameReader, FindsEveryBodyHoweverTheStreamIsSliced) {
  const auto bodies = some_bodies();
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  FrameReader reader{1 << 20};
  std::vector<std::string> found;
  for (const auto slice : any_slicing(stream)) {
    const bool good = reader.receive(slice, [&](std::string_view body) {
      found.emplace_back(body);
      return true;
    });
    RC_ASSERT(good);
  }
  RC_ASSERT(found == bodies);
  RC_ASSERT(reader.at_boundary());
}

PROPERTY(FrameParts, AreEachLengthAndEachBodyHoweverMuchARead) {
  const auto bodies = some_bodies();
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  std::vector<std::size_t> ends;  // of each part, in bytes from the beginning
  for (std::size_t at = 0; const auto& body : bodies) {
    ends.push_back(at += frame_header_size);
    ends.push_back(at += body.size());
  }
  FrameParts parts;
  auto end = ends.begin();
  for (std::size_t at = 0; at < stream.size();) {
    RC_ASSERT(at + parts.missing() == *end);
    const std::size_t size = std::min(parts.missing(), draw::count(1));
    parts.take(std::string_view{stream}.substr(at, size));
    at += size;
    if (at == *end) ++end;
  }
  RC_ASSERT(parts.missing() == frame_header_size);
}

TEST(FrameParts, OfABodyOfNothingIsTheNextLength) {
  FrameParts parts;
  parts.take({"\0\0\0\0", 4});
  EXPECT_EQ(parts.missing(), frame_header_size);
}

PROPERTY(FrameReader, KeepsWhatFollowsAFrameAtWhichItIsStopped) {
  const auto bodies = some_bodies();
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  FrameReader reader{1 << 20};
  std::vector<std::string> found;
  const auto stop_at_frame = [&](std::string_view body) {
    found.emplace_back(body);
    return false;
  };
  for (const auto slice : any_slicing(stream)) RC_ASSERT(reader.receive(slice, stop_at_frame));
  for (std::size_t i = 0; i < bodies.size(); ++i) RC_ASSERT(reader.receive({}, stop_at_frame));
  RC_ASSERT(found == bodies);
}

PROPERTY(PendingBytes, HoldsWhatAStringDoesAlsoWhereItIsLong) {
  PendingBytes pending;
  std::string model;
  for (const int size : draw::several(-100'000, 200'000)) {
    if (size < 0) {
      const auto taken = std::min(model.size(), static_cast<std::size_t>(-size));
      pending.drop(taken);
      model.erase(0, taken);
    } else {
      const std::string more(static_cast<std::size_t>(size), static_cast<char>('a' + size % 26));
      pending.append(more);
      model += more;
    }
    RC_ASSERT(pending.view() == model);
    RC_ASSERT(pending.empty() == model.empty());
  }
}

TEST(PendingBytes, TakeNothingFromNowhere) {
  PendingBytes pending;
  pending.append(std::string(200'000, 'x'));
  pending.append({});  // seen by the sanitizer of undefined behaviour
  EXPECT_EQ(pending.size(), 200'000U);
}

TEST(PendingBytes, TakeMemoryAsTheyArriveAndGiveItBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  const auto resident = [] {
    std::ifstream statm{"/proc/self/statm"};
    std::size_t all = 0, pages = 0;
    statm >> all >> pages;
    return pages * 4096;
  };
  constexpr std::size_t size = 300 << 10, count = 100, spare = 4 << 20;
  const std::string part(10 << 10, 'x');
  const auto before = resident();
  {
    std::deque<PendingBytes> pending(count);
    std::vector<std::unique_ptr<std::string>> above;  // what is in use above it keeps a heap from shrinking
    for (auto& bytes : pending) {
      while (bytes.size() < size) bytes.append(part);
      above.push_back(std::make_unique<std::string>(100, 'y'));
    }
    EXPECT_LT(resident() - before, size * count * 3 / 2);
    for (auto& bytes : pending) bytes.clear();
    EXPECT_LT(resident(), before + size * count / 4 + spare);
  }
}

PROPERTY(FrameReader, BuffersNoMoreThanOneFrame) {
  const auto limit = draw::between<std::size_t>(1, 40);
  const auto stream = draw::text_of({'\0', '\0', '\1', '\x20', 'x'});
  FrameReader reader{limit};
  std::size_t kept = 0;
  for (const auto slice : any_slicing(stream)) {
    kept += slice.size();
    const bool good = reader.receive(slice, [&](std::string_view body) {
      RC_ASSERT(!body.empty());
      RC_ASSERT(body.size() <= limit);
      kept -= frame_header_size + body.size();
      return true;
    });
    if (!good) return;
    RC_ASSERT(kept < frame_header_size + limit);
  }
}

}  // namespace
}  // namespace netdyno
