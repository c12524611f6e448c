#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace netdyno::load {

/// A column of block characters for each value, the greatest of them whole; a value of 0 is an empty one, and no other
/// is.
std::string graph(const std::deque<double>& values);

/// A few lines on a terminal that are drawn over themselves: what stood there before is never wiped first, so nothing
/// flickers. Elsewhere it draws nothing.
class LiveView {
 public:
  /// On stderr, where that is a terminal that can move its cursor.
  LiveView();

  void draw(const std::vector<std::string>& lines);
  /// As if nothing had stood there.
  void wipe();

 private:
  bool terminal_;
  std::size_t below_ = 0;  // lines that the cursor is below the first
};

}  // namespace netdyno::load
