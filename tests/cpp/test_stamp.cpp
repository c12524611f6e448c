#include "common/stamp.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "common/crc32.hpp"

namespace netdyno {
namespace {

std::string stamped(const Stamp& stamp, std::size_t size) {
  std::string text(size, '?');
  write_stamp(stamp, text);
  return text;
}

Stamp any_stamp() {
  return {*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000'000)};
}

TEST(Stamp, WritesAndReadsTheGoldenVectors) {
  const auto golden = nlohmann::json::parse(std::ifstream{NETDYNO_SOURCE_DIR "/protocol/golden.json"}).at("stamps");
  ASSERT_FALSE(golden.empty());
  for (const auto& vector : golden) {
    const Stamp stamp{vector.at("client"), vector.at("sequence")};
    const std::string text = vector.at("text");
    EXPECT_EQ(stamped(stamp, vector.at("size")), text);
    EXPECT_EQ(read_stamp(text), stamp);
  }
}

RC_GTEST_PROP(Stamp, ReadsWhatItWrote, ()) {
  const Stamp stamp = any_stamp();
  const auto size = *rc::gen::inRange<std::size_t>(min_stamp_size, 3000);
  RC_ASSERT(read_stamp(stamped(stamp, size)) == stamp);
}

RC_GTEST_PROP(Stamp, SeesAnyChangedByte, ()) {
  const Stamp stamp = any_stamp();
  std::string text = stamped(stamp, *rc::gen::inRange<std::size_t>(min_stamp_size, 200));
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  text[at] = static_cast<char>(text[at] ^ *rc::gen::inRange(1, 256));
  RC_ASSERT(!read_stamp(text));
}

RC_GTEST_PROP(Crc32, IsThatOfZlib, ()) {
  const auto text =
      *rc::gen::container<std::string>(*rc::gen::inRange<std::size_t>(0, 300), rc::gen::arbitrary<char>());
  const auto before = *rc::gen::arbitrary<std::uint32_t>();
  RC_ASSERT(crc32(before, text) == crc32_z(before, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

TEST(Stamp, NeedsAllOfItsDigits) {
  const std::string text = stamped({1, 2}, min_stamp_size);
  EXPECT_EQ(read_stamp(text), (Stamp{1, 2}));
  EXPECT_FALSE(read_stamp(text.substr(0, min_stamp_size - 1)));
  EXPECT_FALSE(read_stamp(""));
}

}  // namespace
}  // namespace netdyno
