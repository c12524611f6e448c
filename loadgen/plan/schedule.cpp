#include "loadgen/plan/schedule.hpp"

#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace netdyno::load {
namespace {

/// Keeps the requested number of messages in flight. Each answer is at once the intended time of the next message, or
/// in rounds the next multiple of their length since the start: all that are answered by then send together.
class ClosedLoop final : public Schedule {
 public:
  ClosedLoop(std::uint32_t connections, std::uint32_t depth, Nanos round)
      : connections_(connections), depth_(depth), round_(round) {}

  void start(Nanos start_time) override {
    start_ = start_time;
    for (std::uint32_t message = 0; message < depth_; ++message)
      for (std::uint32_t i = 0; i < connections_; ++i) plan(i, start_time);
  }
  void note_answered(std::uint32_t connection, Nanos now) override {
    plan(connection, round_ == 0 ? now : start_ + ((now - start_) / round_ + 1) * round_);
  }

 private:
  void plan(std::uint32_t connection, Nanos intended) {
    if (next_.intended == never) {
      next_ = {intended, connection};
    } else {
      waiting_.push_back({intended, connection});
    }
  }
  void advance() override {
    if (taken_ < waiting_.size()) {
      next_ = waiting_[taken_++];
      return;
    }
    next_.intended = never;
    waiting_.clear();
    taken_ = 0;
  }

  std::uint32_t connections_;
  std::uint32_t depth_;
  Nanos round_;  // 0: none
  Nanos start_ = 0;
  std::vector<Arrival> waiting_;  // a queue behind next_; starts again at the front whenever it runs empty
  std::size_t taken_ = 0;
};

/// When message k of the whole generator is due at one rate. Each time is computed from k alone, so that no rounding
/// adds up.
class EvenPace {
 public:
  explicit EvenPace(double rate_hz) : gap_ns_(1e9L / rate_hz) {}
  Nanos due_after(long double k) const { return static_cast<Nanos>(std::llroundl(k * gap_ns_)); }
  /// The first message that is due at this time or after it.
  std::uint64_t first_from(Nanos time) const {
    auto k = static_cast<std::uint64_t>(time / gap_ns_);
    while (due_after(k) < time) ++k;
    return k;
  }

 private:
  long double gap_ns_;
};

/// Message k of the whole generator is meant for when the pace has it due, on connection k mod N: evenly spaced over
/// all connections. It starts with message `first`, as if `elapsed` had passed.
template <typename PaceOf>
class ConstantRate final : public Schedule {
 public:
  ConstantRate(PaceOf pace, const ThreadShare& share, std::uint64_t first = 0, Nanos elapsed = 0)
      : share_(share), pace_(std::move(pace)), first_(first), elapsed_(elapsed) {}

  void start(Nanos start_time) override {
    start_ = start_time - elapsed_;
    round_ = first_ / share_.connections;
    next_.connection = 0;
    while (number() < first_) go_on();
    plan_next();
  }

 private:
  void advance() override {
    go_on();
    plan_next();
  }
  void go_on() {
    if (++next_.connection == share_.size()) {
      next_.connection = 0;
      ++round_;
    }
  }
  void plan_next() { next_.intended = start_ + pace_.due_after(static_cast<long double>(number())); }
  std::uint64_t number() const { return round_ * share_.connections + share_.global(next_.connection); }

  ThreadShare share_;
  PaceOf pace_;
  std::uint64_t first_;
  Nanos elapsed_;
  Nanos start_ = 0;
  std::uint64_t round_ = 0;
};

/// A Poisson process of a rate that changes: one of rate 1, in the time in which messages become due (the time change
/// of Cox and Lewis 1966). Each thread's share has its part of it.
class ChangingPoisson final : public Schedule {
 public:
  ChangingPoisson(const LoadPlan& plan, const ThreadShare& share)
      : random_(plan.seed * 0x9e3779b97f4a7c15ULL + share.thread),
        gap_(static_cast<double>(share.size()) / share.connections),
        connection_(0, share.size() - 1),
        pace_(plan.steps, plan.warmup) {}

  void start(Nanos start_time) override {
    start_ = start_time;
    advance();
  }

 private:
  void advance() override {
    due_ += gap_(random_);
    next_ = {start_ + pace_.due_after(due_), connection_(random_)};
  }

  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  std::uniform_int_distribution<std::uint32_t> connection_;
  Pace pace_;
  long double due_ = 0;
  Nanos start_ = 0;
};

/// A Poisson process of the share's part of the rate, each arrival on a random connection: the same as an independent
/// Poisson process on every connection.
class PoissonRate final : public Schedule {
 public:
  PoissonRate(double rate_hz, const ThreadShare& share, std::uint64_t seed)
      : random_(seed * 0x9e3779b97f4a7c15ULL + share.thread),
        gap_ns_(rate_hz * share.size() / share.connections / 1e9),
        connection_(0, share.size() - 1) {}

  void start(Nanos start_time) override {
    start_ = start_time;
    advance();
  }

 private:
  void advance() override {
    since_start_ns_ += gap_ns_(random_);
    next_ = {start_ + static_cast<Nanos>(since_start_ns_), connection_(random_)};
  }

  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_ns_;
  std::uniform_int_distribution<std::uint32_t> connection_;
  long double since_start_ns_ = 0;
  Nanos start_ = 0;
};

std::unique_ptr<Schedule> make_even_schedule(EvenPace pace, const ThreadShare& share, Nanos elapsed) {
  return std::make_unique<ConstantRate<EvenPace>>(pace, share, pace.first_from(elapsed), elapsed);
}

}  // namespace

std::unique_ptr<Schedule> make_schedule(const LoadPlan& plan, const ThreadShare& share, Nanos elapsed) {
  switch (plan.arrivals) {
    case Arrivals::closed:
      return std::make_unique<ClosedLoop>(share.size(), plan.depth, plan.round);
    case Arrivals::constant:
      if (!plan.steps.empty()) return std::make_unique<ConstantRate<Pace>>(Pace{plan.steps, plan.warmup}, share);
      return make_even_schedule(EvenPace{plan.rate_hz.value()}, share, elapsed);
    case Arrivals::poisson:
      if (!plan.steps.empty()) return std::make_unique<ChangingPoisson>(plan, share);
      return std::make_unique<PoissonRate>(plan.rate_hz.value(), share, plan.seed);
  }
  std::abort();  // the enumeration is closed; the plan is parsed once
}

}  // namespace netdyno::load
