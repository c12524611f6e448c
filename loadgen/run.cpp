#include "loadgen/run.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>

#include "lib/measure/process.hpp"

namespace netdyno::load {
namespace {

using Milestone = Control::Milestone;

constexpr Nanos start_ahead = 5'000'000;  // every thread is in its loop when the load begins
constexpr Nanos progress_interval = one_second / 2;

class Run {
 public:
  Run(const LoadPlan& plan, Observer& observer)
      : plan_(plan), observer_(observer), control_(plan.threads), timeline_(plan.duration, plan.threads) {
    for (std::uint32_t i = 0; i < plan.threads; ++i)
      workers_.push_back(std::make_unique<Worker>(plan, Slice{i, plan.threads, plan.connections}, control_, timeline_));
  }

  Measurement carry_out() {
    std::vector<std::jthread> threads;
    for (const auto& worker : workers_) threads.emplace_back([&worker] { worker->run(); });

    control_.wait_for(Milestone::connected, never);
    observer_.connected(control_.established);
    const bool all_joined = join();
    if (begin()) watch();
    observer_.finished();
    threads.clear();  // joins them
    return collect(all_joined);
  }

 private:
  void wake_all() {
    for (const auto& worker : workers_) worker->wake();
  }

  bool join() {
    if (plan_.workload != Workload::chat || control_.established == 0) return true;
    if (plan_.audience == Audience::others && control_.established < 2) return true;
    control_.joining = true;
    wake_all();
    return control_.wait_for(Milestone::joined, now_ns() + plan_.connect_timeout);
  }

  bool begin() {
    start_ = control_.established > 0 ? now_ns() + start_ahead : never;
    control_.start = start_;
    wake_all();
    return start_ != never;
  }

  /// Reports until the threads have nothing more to measure.
  void watch() {
    const Nanos window_start = start_ + plan_.warmup;
    const Nanos window_end = window_start + plan_.duration;
    if (!control_.wait_for(Milestone::finished, window_start)) observer_.window_start();
    for (Nanos next = window_start + progress_interval; next < window_end; next += progress_interval) {
      if (control_.wait_for(Milestone::finished, next)) return;
      observer_.progress(completed(), next - window_start, timeline_.latest());
    }
    // The threads may be done with the window before this one sees its end; done earlier than that, they had no window.
    if (!control_.wait_for(Milestone::finished, window_end) || now_ns() >= window_end) observer_.window_end();
    control_.wait_for(Milestone::finished, never);
  }

  std::uint64_t completed() const {
    std::uint64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->completed();
    return sum;
  }

  Measurement collect(bool all_joined) const {
    Measurement result;
    for (const auto& worker : workers_) {
      result.figures.add(worker->figures());
      std::ranges::copy(worker->cpu_in_window(), std::back_inserter(result.cpu));
    }
    result.timeline = timeline_.slots();
    result.max_rss_bytes = peak_rss_bytes();
    result.cores = usable_cores();
    result.all_joined = all_joined;
    return result;
  }

  const LoadPlan& plan_;
  Observer& observer_;
  Control control_;
  Timeline timeline_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Nanos start_ = never;
};

}  // namespace

Measurement run_load(const LoadPlan& plan, Observer& observer) { return Run{plan, observer}.carry_out(); }

}  // namespace netdyno::load
