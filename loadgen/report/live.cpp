#include "loadgen/report/live.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace netdyno::load {
namespace {

constexpr std::array<std::string_view, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// A line that wraps would move all that is below it. In UTF-8 a character's further bytes begin with the bits 10.
std::string_view cut(std::string_view line, std::size_t width) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i)
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80 && ++characters == width) return line.substr(0, i);
  return line;
}

}  // namespace

std::string graph(const std::deque<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, value);
  std::string text;
  for (const double value : values) {
    const double height = most > 0 && !std::isnan(value) ? std::ceil(value / most * (blocks.size() - 1)) : 0;
    text += blocks[static_cast<std::size_t>(height)];
  }
  return text;
}

LiveView::LiveView() : terminal_(isatty(STDERR_FILENO) == 1) {
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view{term} == "dumb") terminal_ = false;
}

void LiveView::draw(const std::vector<std::string>& lines) {
  if (!terminal_) return;
  std::string text = below_ > 0 ? fmt::format("\033[{}A\r", below_) : "\r";
  const std::size_t width = columns();
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("{}{}\033[K", i > 0 ? "\r\n" : "", cut(lines[i], width));
  text += "\033[J";
  below_ = lines.size() - 1;
  std::fwrite(text.data(), 1, text.size(), stderr);  // at once: stderr has no buffer
}

void LiveView::wipe() { draw({""}); }

}  // namespace netdyno::load
