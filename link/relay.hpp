#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "lib/measure/histogram.hpp"
#include "lib/net/epoll/poller.hpp"
#include "link/line.hpp"
#include "link/tap.hpp"

namespace netdyno::link {

/// Frames and bytes of one direction over the whole life. What came in was carried and has left, was lost, dropped by
/// the full line, not taken by the other end (its interface was down), or is still under way.
struct Counts {
  std::uint64_t frames_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t frames_out = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t lost = 0;
  std::uint64_t queue_full = 0;
  std::uint64_t overflowed = 0;
  std::uint64_t refused = 0;
};

/// One direction of the relay: reads frames where they come in, and writes each when it is due. Dies where a device
/// fails.
class Direction final : public Watched {
 public:
  Direction(const Terms& terms, std::uint64_t number, const Tap& from, const Tap& to);

  /// Reads some frames of those that are there.
  void read_some();
  /// Writes some of the frames that are due; `late` takes by how much each was too late.
  void write_due(Histogram& late);

  /// More frames may be there to be read.
  bool readable() const { return readable_; }
  /// When the next frame is to be written; time_point::max() when there is none.
  Clock::time_point next_due() const { return line_.held() > 0 ? line_.due() : Clock::time_point::max(); }
  nlohmann::ordered_json totals() const;

  void on_events(std::uint32_t events) override;

 private:
  Line line_;
  const Tap& from_;
  const Tap& to_;
  Counts counts_;
  bool readable_ = true;
};

/// Carries frames both ways until shutdown. One thread, which delays a frame only where it is late itself.
class Relay final : public Watched {
 public:
  /// `stop_signal` becomes readable on shutdown.
  Relay(const Terms& terms, const Tap& a, const Tap& b, int stop_signal);

  void run();
  /// The line that ends the program's life (README.md says what is in it).
  nlohmann::ordered_json totals() const;

  void on_events(std::uint32_t) override { ended_ = true; }

 private:
  void wait();

  Clock::time_point started_ = Clock::now();
  Poller poller_;
  Direction there_;
  Direction back_;
  Histogram late_;
  bool ended_ = false;
};

}  // namespace netdyno::link
