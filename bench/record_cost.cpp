// What one message costs the generator beside the system calls: each step of it alone.
#include <benchmark/benchmark.h>

#include <random>

#include "lib/measure/clock.hpp"
#include "lib/measure/histogram.hpp"
#include "loadgen/codec/codec.hpp"
#include "loadgen/connect/loop_clock.hpp"
#include "loadgen/match/flight.hpp"

namespace netdyno::load {
namespace {

void record_in_histogram(benchmark::State& state) {
  std::mt19937_64 random{1};
  std::lognormal_distribution<double> latency{11, 0.5};  // around 60 us
  std::vector<std::int64_t> values(4096);
  for (auto& value : values) value = static_cast<std::int64_t>(latency(random));
  Histogram histogram;
  std::size_t i = 0;
  for (auto _ : state) histogram.record(values[i++ & 4095]);
  benchmark::DoNotOptimize(histogram.count());
}
BENCHMARK(record_in_histogram);

void read_the_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now_ns());
}
BENCHMARK(read_the_clock);

void read_the_loop_clock(benchmark::State& state) {
  LoopClock clock;
  for (const Nanos end = now_ns() + one_second / 10; now_ns() < end;) clock.turn();  // the rate is known by then
  std::uint64_t readings = 0;
  for (auto _ : state) benchmark::DoNotOptimize(++readings % 1000 == 0 ? clock.turn() : clock.now());
}
BENCHMARK(read_the_loop_clock);

void make_round_trip(benchmark::State& state) {
  Flight flight;
  std::uint64_t sequence = 0;
  for (auto _ : state) {
    flight.intend(1);
    flight.send(2);
    benchmark::DoNotOptimize(flight.answer(sequence++));
  }
}
BENCHMARK(make_round_trip);

struct ReplyCount final : ReplySink {
  std::uint64_t replies = 0;
  void on_reply(const Stamp&, std::size_t) override { ++replies; }
  void on_corrupt() override { std::abort(); }
};

void encode_and_verify(benchmark::State& state) {
  LoadPlan plan;
  plan.size = static_cast<std::size_t>(state.range(0));
  const auto codec = make_codec(plan);
  const auto decoder = codec->make_decoder();
  ReplyCount sink;
  std::string message;
  std::uint64_t sequence = 0;
  for (auto _ : state) {
    message.clear();
    codec->encode({1, sequence++}, message);
    decoder->receive(message, sink);
  }
  benchmark::DoNotOptimize(sink.replies);
}
BENCHMARK(encode_and_verify)->Arg(31)->Arg(1024)->Arg(65536);

}  // namespace
}  // namespace netdyno::load
