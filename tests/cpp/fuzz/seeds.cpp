#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {

std::vector<std::string> golden_streams(std::string_view workload) {
  std::vector<std::string> streams;
  const auto golden = nlohmann::json::parse(std::ifstream{NETDYNO_SOURCE_DIR "/protocol/golden.json"});
  for (const auto& vector : golden.at("vectors")) {
    if (!workload.empty() && vector.at("workload") != workload) continue;
    std::string bytes(1, '\0');
    for (const std::string hex : vector.at("chunks"))
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    streams.push_back(bytes);
  }
  return streams;
}

}  // namespace netdyno::fuzz
