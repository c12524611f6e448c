#pragma once

#include <rapidcheck.h>

#include <string_view>
#include <vector>

namespace netdyno {

/// Ways to cut `stream` into pieces, empty ones never among them. The stream must outlive the pieces.
inline rc::Gen<std::vector<std::string_view>> any_slicing(std::string_view stream) {
  const auto sizes = rc::gen::container<std::vector<std::size_t>>(
      rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 4), rc::gen::inRange<std::size_t>(1, 200)));
  return rc::gen::map(sizes, [stream](const std::vector<std::size_t>& asked) {
    std::vector<std::string_view> slices;
    std::string_view rest = stream;
    for (std::size_t i = 0; !rest.empty(); ++i) {
      slices.push_back(rest.substr(0, asked.empty() ? rest.size() : asked[i % asked.size()]));
      rest.remove_prefix(slices.back().size());
    }
    return slices;
  });
}

}  // namespace netdyno
