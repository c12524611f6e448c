#include "lib/measure/stamp.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/measure/crc32.hpp"
#include "tests/cpp/property.hpp"

namespace netdyno {
namespace {

std::string stamped(const Stamp& stamp, std::size_t size) {
  std::string text{"before"};
  append_stamp(stamp, size, text);
  return text.substr(6);
}

Stamp any_stamp() { return {draw::any<std::uint32_t>(), draw::between<std::uint64_t>(0, 1'000'000'000'000)}; }

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

TEST(Stamp, WritesEveryFourDigitsInEachPlace) {
  for (const std::uint64_t place : {1ULL, 10'000ULL, 100'000'000ULL}) {
    for (std::uint64_t four = 0; four < 10'000; ++four) {
      const Stamp stamp{0xabc, four * place};
      const std::string text = stamped(stamp, min_stamp_size);
      ASSERT_EQ(text.substr(0, 20), fmt::format("00000abc{:012}", stamp.sequence));
      ASSERT_EQ(read_stamp(text), stamp);
    }
  }
}

PROPERTY(Stamp, ReadsWhatItWrote) {
  const Stamp stamp = any_stamp();
  const auto size = draw::between<std::size_t>(min_stamp_size, 3000);
  RC_ASSERT(read_stamp(stamped(stamp, size)) == stamp);
}

PROPERTY(Stamp, SeesAnyChangedByte) {
  const Stamp stamp = any_stamp();
  std::string text = stamped(stamp, draw::between<std::size_t>(min_stamp_size, 200));
  const auto position = draw::between<std::size_t>(0, text.size());
  text[position] = static_cast<char>(text[position] ^ draw::between(1, 256));
  RC_ASSERT(!read_stamp(text));
}

PROPERTY(Crc32, IsThatOfZlib) {
  const auto text = draw::bytes(draw::between<std::size_t>(20, 300));
  std::uint64_t first = 0, second = 0;
  std::uint32_t third = 0;
  std::memcpy(&first, text.data(), 8);
  std::memcpy(&second, text.data() + 8, 8);
  std::memcpy(&third, text.data() + 16, 4);
  const auto rest = std::string_view{text}.substr(20);
  const auto expected = crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  RC_ASSERT(crc32(first, second, third, rest) == expected);
  RC_ASSERT(crc32_portable(first, second, third, rest) == expected);
}

TEST(Stamp, NeedsAllOfItsDigits) {
  const std::string text = stamped({1, 2}, min_stamp_size);
  EXPECT_EQ(read_stamp(text), (Stamp{1, 2}));
  EXPECT_FALSE(read_stamp(text.substr(0, min_stamp_size - 1)));
  EXPECT_FALSE(read_stamp(""));
}

}  // namespace
}  // namespace netdyno
