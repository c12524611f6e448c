#pragma once

#include <string_view>
#include <vector>

#include "tests/cpp/property.hpp"

namespace netdyno {

/// `stream` cut into pieces, empty ones never among them. The stream must outlive the pieces.
inline std::vector<std::string_view> any_slicing(std::string_view stream) {
  const auto sizes = draw::many([] { return draw::between<std::size_t>(1, draw::one_of({4U, 200U})); });
  std::vector<std::string_view> slices;
  for (std::size_t i = 0; !stream.empty(); ++i) {
    slices.push_back(stream.substr(0, sizes.empty() ? stream.size() : sizes[i % sizes.size()]));
    stream.remove_prefix(slices.back().size());
  }
  return slices;
}

}  // namespace netdyno
