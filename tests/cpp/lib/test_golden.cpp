// Every vector of protocol/golden.json against the sessions, with the input sliced in many ways.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "lib/server/options.hpp"
#include "lib/session/session.hpp"

namespace netdyno {
namespace {

using nlohmann::json;

const json& golden() {
  static const json document = json::parse(std::ifstream{NETDYNO_SOURCE_DIR "/protocol/golden.json"});
  return document;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {digits[byte >> 4], digits[byte & 15]};
  }
  return hex;
}

/// The options of a vector, by way of the command line that a server would get.
ServerOptions options_of(const json& vector) {
  std::vector<std::string> arguments{"golden", "--workload", vector.at("workload")};
  for (const auto& [name, value] : vector.at("options").items()) {
    arguments.push_back("--" + name);
    arguments.push_back(value);
  }
  std::vector<const char*> argv;
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  return parse_server_options(static_cast<int>(argv.size()), argv.data(), ThreadModel::any);
}

/// Without the lines Date of http replies: these differ with each second.
std::string undated(std::string_view bytes) {
  constexpr std::string_view mark = "\r\nDate: ";
  std::string text{bytes};
  for (auto begin = text.find(mark); begin != std::string::npos; begin = text.find(mark, begin))
    text.erase(begin, text.find("\r\n", begin + 2) - begin);
  return text;
}

/// The effects in the words of golden.json.
json in_words(const Effects& effects, WriteMode mode) {
  json list = json::array();
  for (const Effect& effect : effects) {
    switch (effect.kind) {
      case Effect::Kind::write:
        list.push_back({{"write", to_hex(undated(effects.bytes(effect)))}});
        break;
      case Effect::Kind::broadcast: {
        json parts = json::array();
        for_each_part(*effect.frame, mode, [&](std::string_view part) { parts.push_back(to_hex(part)); });
        list.push_back({{"broadcast", parts}});
        break;
      }
      case Effect::Kind::wait:
        list.push_back({{"wait", effect.duration.count()}});
        break;
      case Effect::Kind::burn:
        list.push_back({{"burn", effect.duration.count()}});
        break;
      case Effect::Kind::close:
        list.push_back({{"close", true}});
        break;
    }
  }
  return list;
}

/// Joins a write with the one before it: where a server read twice, it may write twice.
json joined(const json& effects) {
  json list = json::array();
  for (const json& effect : effects) {
    if (effect.contains("write") && !list.empty() && list.back().contains("write")) {
      list.back()["write"] = list.back()["write"].get<std::string>() + effect["write"].get<std::string>();
    } else {
      list.push_back(effect);
    }
  }
  return list;
}

struct Served {
  json effects = json::array();
  Totals totals;
};

Served serve(const json& vector, const ServerOptions& options, const std::vector<std::string_view>& slices) {
  Counters counters;
  const auto session = make_session(options, counters);
  Served outcome;
  const auto take = [&](Effects& effects) {
    for (const json& effect : in_words(effects, options.write_mode)) outcome.effects.push_back(effect);
    effects.clear();
  };
  Effects effects{options.write_mode};
  for (const auto slice : slices) {
    session->receive(slice, effects);
    take(effects);
  }
  if (vector.at("ends")) {
    session->end(effects);
    take(effects);
  }
  const bool may_join = options.write_mode == WriteMode::gathered || options.workload == Workload::echo;
  if (may_join) outcome.effects = joined(outcome.effects);
  outcome.totals = counters.totals();
  return outcome;
}

void expect_golden(const json& vector, const ServerOptions& options, const std::vector<std::string_view>& slices) {
  const Served outcome = serve(vector, options, slices);
  const bool echo = vector.at("workload") == "echo";
  ASSERT_EQ(outcome.effects, echo ? joined(vector.at("effects")) : vector.at("effects"));
  ASSERT_EQ(outcome.totals.protocol_errors, vector.at("protocol_errors"));
  const json& requests = vector.at("requests");
  ASSERT_TRUE(requests.is_null() || requests == outcome.totals.requests) << outcome.totals.requests;
}

/// `stream` cut into pieces of `size` bytes.
std::vector<std::string_view> cut_every(std::string_view stream, std::size_t size) {
  std::vector<std::string_view> slices;
  for (; !stream.empty(); stream.remove_prefix(slices.back().size())) slices.push_back(stream.substr(0, size));
  return slices;
}

/// `stream` cut at random places, mostly into pieces of a few bytes.
std::vector<std::string_view> cut_at_random(std::string_view stream, std::mt19937& random) {
  std::vector<std::string_view> slices;
  std::geometric_distribution<std::size_t> more{std::uniform_real_distribution<>{0.002, 0.5}(random)};
  for (; !stream.empty(); stream.remove_prefix(slices.back().size()))
    slices.push_back(stream.substr(0, 1 + more(random)));
  return slices;
}

/// A test parameter that prints its name instead of thousands of digits.
struct Named {
  const json* vector;
  friend std::ostream& operator<<(std::ostream& out, const Named& named) { return out << named.vector->at("name"); }
};

class Golden : public testing::TestWithParam<Named> {
 protected:
  void SetUp() override {
    for (const auto& chunk : vector().at("chunks")) chunks_.push_back(from_hex(chunk));
    for (const auto& chunk : chunks_) stream_ += chunk;
    EXPECT_EQ(format_resolved(options_), vector().at("resolved").get<std::string>());
  }
  static const json& vector() { return *GetParam().vector; }
  void expect(const std::vector<std::string_view>& slices) const { expect_golden(vector(), options_, slices); }

  const ServerOptions options_ = options_of(vector());
  std::vector<std::string> chunks_;
  std::string stream_;
};

TEST_P(Golden, AsGiven) { expect({chunks_.begin(), chunks_.end()}); }

TEST_P(Golden, InOnePiece) { expect(cut_every(stream_, stream_.size())); }

TEST_P(Golden, ByteByByte) { expect(cut_every(stream_, 1)); }

TEST_P(Golden, InTwoPiecesCutAnywhere) {
  const std::size_t step = 1 + stream_.size() / 512;  // every place, except in the few long streams
  for (std::size_t cut = 1; cut < stream_.size(); cut += cut < 32 || cut + 32 > stream_.size() ? 1 : step) {
    SCOPED_TRACE(cut);
    const std::string_view stream{stream_};
    expect({stream.substr(0, cut), stream.substr(cut)});
    if (HasFatalFailure()) return;
  }
}

TEST_P(Golden, InRandomPieces) {
  std::mt19937 random{20250101};  // fixed, so that a failure comes again
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    expect(cut_at_random(stream_, random));
    if (HasFatalFailure()) return;
  }
}

std::vector<Named> vectors() {
  std::vector<Named> list;
  for (const json& vector : golden().at("vectors")) list.push_back({&vector});
  return list;
}

std::string test_name(const testing::TestParamInfo<Named>& info) {
  std::string name;
  for (const char c : info.param.vector->at("name").get<std::string>()) name += std::isalnum(c) != 0 ? c : '_';
  return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Vectors, Golden, testing::ValuesIn(vectors()), test_name);

}  // namespace
}  // namespace netdyno
