#include "loadgen/run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "lib/cli/die.hpp"
#include "lib/measure/process.hpp"
#include "lib/measure/witness.hpp"
#include "lib/net/descriptor.hpp"
#include "lib/net/signals.hpp"
#include "loadgen/write_only.hpp"

namespace netdyno::load {
namespace {

using Milestone = Control::Milestone;

constexpr Nanos start_ahead = 5'000'000;                  // every thread is in its loop when the load begins
constexpr std::chrono::milliseconds witness_every{1};     // 2.7% of a core where a virtual timer costs 27 us
constexpr std::chrono::microseconds shortest_noted{100};  // 999 of 1000 wake-ups are less late at rest
constexpr Nanos progress_interval = one_second / 2;
constexpr Nanos one_request = one_second / 10;            // timeout(1) sends SIGTERM twice, and means it once
constexpr Nanos furthest_ahead = 24 * 3600 * one_second;  // a later moment is not one of this clock

/// A number that stands behind a word on a line.
template <class Number>
std::optional<Number> parse_number_behind(std::string_view word, std::string_view line) {
  Number number = 0;
  if (!line.starts_with(word)) return {};
  const char* const end = line.data() + line.size();
  const auto [read_to, error] = std::from_chars(line.data() + word.size(), end, number);
  if (error != std::errc{} || read_to != end) return {};
  return number;
}

/// The moment that "go" names; none where it is too far ahead to wait for.
std::optional<Nanos> parse_moment(std::string_view line) {
  const auto moment = parse_number_behind<Nanos>("go ", line);
  return moment && *moment >= 0 && *moment <= now_ns() + furthest_ahead ? moment : std::nullopt;
}

/// Lines of stdin, until stop().
class Lines {
 public:
  Lines() {
    if (!stopped_) die_errno("--turns: eventfd", errno);
  }

  /// Nothing once stdin has ended, or after stop().
  std::optional<std::string> next() {
    for (;;) {
      pollfd ready[] = {{stopped_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
      if (const auto end = begun_.find('\n'); end == std::string::npos) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR) die_errno("--turns: poll", errno);
      } else if (poll(ready, 1, 0) <= 0) {
        std::string line = begun_.substr(0, end);
        begun_.erase(0, end + 1);
        return line;
      }
      if (ready[0].revents != 0) return {};
      if (ready[1].revents != 0 && !read_more()) return {};
    }
  }

  /// Also a signal's handler calls it.
  void stop() {
    const std::uint64_t increment = 1;
    [[maybe_unused]] const ssize_t written = write(stopped_.get(), &increment, sizeof increment);
  }

 private:
  /// Whether there is more. A last line needs no newline.
  bool read_more() {
    std::array<char, 4096> bytes{};
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count > 0) begun_.append(bytes.data(), static_cast<std::size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) return true;
    if (begun_.empty()) return false;
    begun_ += '\n';
    return true;
  }

  UniqueFd stopped_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::string begun_;
};

/// A number behind a word on the next line of stdin.
std::uint64_t read_number_after(std::string_view word, const char* otherwise) {
  std::string line;
  std::getline(std::cin, line);
  const auto number = parse_number_behind<std::uint64_t>(word, line);
  if (!number) die(otherwise);
  return *number;
}

}  // namespace

Nanos wait_for_go() {
  std::string line;
  std::getline(std::cin, line);
  const auto named = parse_moment(line);
  if (!named) die("no start time came on stdin");
  const Nanos start = *named;
  if (const Nanos now = now_ns(); start < now)
    die(fmt::format("the start time was already {} us ago", (now - start) / 1000));
  return start;
}

namespace {

class Run {
 public:
  Run(const LoadPlan& plan, Observer& observer)
      : plan_(plan), observer_(observer), control_(plan), timeline_(plan.duration, plan.threads, plan.share.count > 1) {
    for (std::uint32_t i = 0; i < plan.threads; ++i)
      workers_.push_back(std::make_unique<Worker>(plan, make_thread_share(plan, i), control_, timeline_));
  }

  Measurement carry_out() {
    std::vector<std::jthread> threads;
    for (const auto& worker : workers_) threads.emplace_back([&worker] { worker->run(); });

    control_.wait_for(Milestone::connected, never);
    const bool is_part = plan_.is_part_of_a_room();  // "connected" invites "go", so it comes after join()
    if (!is_part) observer_.on_connected(control_.read_established());
    const bool all_joined = join();
    if (is_part) observer_.on_connected(control_.read_established());
    if (plan_.turns) {
      take_turns();
    } else if (begin()) {
      watch();
      if (is_part) expect_deliveries_of_others();
      control_.wait_for(Milestone::finished, never);
    }
    observer_.on_finished();
    threads.clear();  // joins them
    leave_interrupts();
    return collect(all_joined);
  }

 private:
  void wake_all() {
    for (const auto& worker : workers_) worker->wake();
  }

  /// The first signal to end ends the window, the second the wait for the last answers (Control::interrupt), the third
  /// the program.
  void heed_interrupts() {
    interrupts_ = 0;
    interrupted_at_ = 0;
    heeding_ = this;
    struct sigaction action {};
    action.sa_handler = handle_interrupt;
    action.sa_flags = SA_RESTART;
    for (const int number : ending_signals()) sigaction(number, &action, nullptr);
  }

  static void handle_interrupt(int number) {
    const int error = errno;
    const Nanos now = now_ns();
    if (number != SIGINT && interrupts_ > 0 && now - interrupted_at_ < one_request) return;
    interrupted_at_ = now;
    if (++interrupts_ == 2) end_at_signals();
    if (Run* const run = heeding_) {
      run->control_.interrupt(now);
      run->wake_all();
      if (run->lines_) run->lines_->stop();
    }
    errno = error;
  }

  /// Restores the default action of the signals, but not after an interrupt: the second one then does nothing, so that
  /// a user who presses Ctrl-C twice does not lose the results.
  static void leave_interrupts() {
    heeding_ = nullptr;
    if (interrupts_ == 0) end_at_signals();
  }

  bool join() {
    if (plan_.workload != Workload::chat || control_.read_established() == 0) return true;
    if (plan_.audience == Audience::others && control_.read_established() < 2) return true;
    control_.begin_joining();
    wake_all();
    return control_.wait_for(Milestone::joined, now_ns() + plan_.connect_timeout);
  }

  /// --turns: a slice of the load at each moment that a line on stdin names, until one says that it ends. A slice
  /// counts unless "drop" is the next line.
  void take_turns() {
    lines_.emplace();
    heed_interrupts();
    while (!cannot_go_on()) {
      const auto line = lines_->next();
      if (!line || *line == "end") break;
      if (*line == "drop") {
        settle(false);
      } else if (const auto moment = parse_moment(*line)) {
        settle(true);
        take_slice(*moment);
      } else {
        die(fmt::format("--turns: '{}' is none of 'go N', 'drop', 'end'", *line));
      }
    }
    settle(true);
    control_.set_start(never);
    wake_all();
    control_.wait_for(Milestone::finished, never);
  }

  bool cannot_go_on() const { return control_.read_established() == 0 || control_.is_stuck() || interrupts_ > 0; }

  void take_slice(Nanos start) {
    control_.count_slice();
    if (start <= now_ns()) return observer_.on_missed_slice();
    start_ = start;
    Witness witness{watched_, witness_every, shortest_noted};
    timeline_.clear();
    control_.begin_slice();
    control_.plan_window_end(start + plan_.warmup + plan_.duration);
    control_.set_start(start);
    wake_all();
    control_.wait_for(Milestone::sliced, never);
    control_.plan_window_end(never);
    is_unsettled_ = true;
    Nanos paused = 0;
    for (const auto& pause : witness.stop()) paused += std::chrono::nanoseconds{pause.to - pause.from}.count();
    observer_.on_slice(control_.read_sent_in_slice(), paused);
  }

  /// With --witness: the generator's cores. The server's say nothing: the kernel does not interrupt a system call
  /// there, and a batch that io_uring sends takes as long as a pause.
  std::vector<WatchedCore> choose_watched() const {
    std::vector<WatchedCore> watched;
    if (!plan_.witness) return watched;
    for (const int core : usable_cores()) watched.push_back({fmt::to_string(core), core});
    return watched;
  }

  /// Decides whether the last slice counts, unless that is decided.
  void settle(bool counts) {
    if (!is_unsettled_) return;
    is_unsettled_ = false;
    control_.settle_slice(counts);
    if (!counts) return;
    const Nanos duration = measure_slice();
    counted_ += duration;
    auto slots = timeline_.slots();
    slots.resize(static_cast<std::size_t>((duration + timeline_.interval() - 1) / timeline_.interval()));
    std::ranges::move(slots, std::back_inserter(slots_));
    std::size_t thread = 0;
    for (const auto& worker : workers_)
      for (const CpuTime& cpu : worker->cpu_in_window()) {
        if (thread == cpu_.size()) cpu_.emplace_back();
        cpu_[thread++] += cpu;
      }
  }

  Nanos measure_slice() const {
    return std::clamp<Nanos>(control_.read_early_end() - (start_ + plan_.warmup), 0, plan_.duration);
  }

  bool begin() {
    start_ = control_.read_established() == 0 ? never : plan_.await_go ? wait_for_go() : now_ns() + start_ahead;
    if (start_ != never) {
      control_.plan_window_end(start_ + plan_.warmup + plan_.duration);
      heed_interrupts();
    }
    control_.set_start(start_);
    wake_all();
    return start_ != never;
  }

  /// Reports until the threads have nothing more to measure.
  void watch() {
    const Nanos window_start = start_ + plan_.warmup;
    const Nanos window_end = window_start + plan_.duration;
    if (await_moment(window_start)) observer_.on_window_start();
    for (Nanos next = window_start + progress_interval; next < window_end; next += progress_interval) {
      if (!await_moment(next)) return;
      observer_.on_progress(sum_progress(next - window_start), timeline_.latest());
    }
    if (await_moment(window_end)) observer_.on_window_end();
  }

  /// Waits for a moment of the window. It does not come where the threads are done before; those that are done once it
  /// has come may be so before this thread sees it.
  bool await_moment(Nanos moment) { return !control_.wait_for(Milestone::finished, moment) || now_ns() >= moment; }

  /// A part of a room: each of its listeners hears what all parts have sent, but for what it said to others itself.
  void expect_deliveries_of_others() {
    control_.wait_for(Milestone::sent, never);
    observer_.on_sent(control_.read_intended());
    const auto of_all = read_number_after("sent ", "the count of the other parts did not come on stdin");
    std::uint64_t apart = 0;
    for (std::uint32_t i = 0; i < plan_.threads; ++i)
      apart += make_thread_share(plan_, i).size() - make_thread_share(plan_, i).select_speakers(plan_).size();
    const std::uint64_t established = control_.read_established();
    const std::uint64_t listeners = established - std::min(apart, established);
    const std::uint64_t own = plan_.audience == Audience::others ? control_.read_intended() : 0;
    expected_of_others_ = listeners * of_all - std::min(own, listeners * of_all);
    control_.add_pending_of_others(static_cast<std::int64_t>(expected_of_others_));
  }

  Observer::Progress sum_progress(Nanos elapsed) const {
    Observer::Progress sum{0, 0, elapsed};
    for (const auto& worker : workers_) {
      sum.completed += worker->completed();
      sum.answered += worker->answered();
    }
    return sum;
  }

  Measurement collect(bool all_joined) {
    Measurement result;
    for (const auto& worker : workers_) result.figures.add(worker->figures());
    result.figures.messages.expected += expected_of_others_;
    if (!plan_.turns && start_ != never) {
      is_unsettled_ = true;
      settle(true);
    }
    result.cpu = cpu_;
    result.timeline = slots_;
    result.interval = timeline_.interval();
    if (!plan_.turns && start_ != never) result.began = start_ + plan_.warmup;
    result.duration = counted_;
    result.longest_slice = std::min(counted_, plan_.duration);
    if (const Nanos ended = control_.read_load_end(); ended != never && !plan_.turns)
      result.load_ended = std::clamp<Nanos>(ended - (start_ + plan_.warmup), 0, result.duration);
    result.max_rss_bytes = peak_rss_bytes();
    result.cores = usable_cores().size();
    result.all_joined = all_joined;
    return result;
  }

  static inline std::atomic<Run*> heeding_ = nullptr;
  static inline std::atomic<int> interrupts_ = 0;
  static inline std::atomic<Nanos> interrupted_at_ = 0;

  const LoadPlan& plan_;
  const std::vector<WatchedCore> watched_ = choose_watched();
  Observer& observer_;
  Control control_;
  Timeline timeline_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Nanos start_ = never;
  bool is_unsettled_ = false;  // it is not decided yet whether the last slice counts
  Nanos counted_ = 0;          // the windows of those that do, and what they brought
  std::vector<Timeline::Slot> slots_;
  std::vector<CpuTime> cpu_;
  std::optional<Lines> lines_;            // --turns
  std::uint64_t expected_of_others_ = 0;  // a part of a room: deliveries to its own connections, of all messages
};

}  // namespace

Measurement run_load(const LoadPlan& plan, Observer& observer) {
  return plan.is_write_only() ? run_write_only(plan, observer) : Run{plan, observer}.carry_out();
}

}  // namespace netdyno::load
