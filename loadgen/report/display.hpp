#pragma once

#include <deque>
#include <string>
#include <vector>

#include "loadgen/plan/plan.hpp"
#include "loadgen/report/audits.hpp"
#include "loadgen/report/live.hpp"
#include "loadgen/run.hpp"

namespace netdyno::load {

/// States what went wrong, how often, and of how many things of its kind.
std::string fault_text(const FaultKind& kind, const Figures& figures);

/// The text that a person reads at the end; fits one screen (80 columns, 24 lines).
std::string summary(const LoadPlan& plan, const Measurement& measurement, const std::vector<Audit>& audits);

/// Writes events to `--events-fd`, and a live view to stderr where that is a terminal.
class Display final : public Observer {
 public:
  explicit Display(const LoadPlan& plan);

  void on_connected(std::uint64_t established) override;
  void on_window_start() override;
  void on_progress(const Progress& progress, const Timeline::Slot& latest) override;
  void on_window_end() override;
  void on_sent(std::uint64_t messages) override;
  void on_slice(std::uint64_t sent, Nanos paused) override;
  void on_missed_slice() override;
  void on_finished() override { view_.wipe(); }

 private:
  void write_event(const std::string& json) const;

  const LoadPlan& plan_;
  LiveView view_;
  std::deque<double> rates_, medians_, p99s_, errors_;  // the latest
  std::uint64_t last_completed_ = 0;
  Nanos last_elapsed_ = 0;
};

}  // namespace netdyno::load
