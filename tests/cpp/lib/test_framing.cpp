#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "lib/protocol/framing.hpp"
#include "tests/cpp/lib/framed.hpp"
#include "tests/cpp/lib/slices.hpp"

namespace netdyno {
namespace {

TEST(FrameHeader, IsInNetworkByteOrder) {
  const auto header = encode_frame_header(0x01020304);
  EXPECT_EQ(std::string(header.data(), header.size()), "\x01\x02\x03\x04");
}

RC_GTEST_PROP(FrameHeader, RoundTrips, (std::uint32_t size)) {
  RC_ASSERT(decode_frame_header(encode_frame_header(size).data()) == size);
}

RC_GTEST_PROP(FrameReader, FindsEveryBodyHoweverTheStreamIsSliced, ()) {
  const auto bodies = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty<std::string>());
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  FrameReader reader{1 << 20};
  std::vector<std::string> found;
  for (const auto slice : *any_slicing(stream)) {
    const bool good = reader.receive(slice, [&](std::string_view body) {
      found.emplace_back(body);
      return true;
    });
    RC_ASSERT(good);
  }
  RC_ASSERT(found == bodies);
  RC_ASSERT(reader.at_boundary());
}

RC_GTEST_PROP(FrameReader, KeepsWhatFollowsAFrameAtWhichItIsStopped, ()) {
  const auto bodies = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty<std::string>());
  std::string stream;
  for (const auto& body : bodies) stream += frame(body);
  FrameReader reader{1 << 20};
  std::vector<std::string> found;
  const auto one = [&](std::string_view body) {
    found.emplace_back(body);
    return false;
  };
  for (const auto slice : *any_slicing(stream)) RC_ASSERT(reader.receive(slice, one));
  for (std::size_t i = 0; i < bodies.size(); ++i) RC_ASSERT(reader.receive({}, one));
  RC_ASSERT(found == bodies);
}

RC_GTEST_PROP(FrameReader, BuffersNoMoreThanOneFrame, ()) {
  const auto limit = *rc::gen::inRange<std::size_t>(1, 40);
  const auto stream = *rc::gen::container<std::string>(rc::gen::element('\0', '\0', '\1', '\x20', 'x'));
  FrameReader reader{limit};
  std::size_t kept = 0;
  for (const auto slice : *any_slicing(stream)) {
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
