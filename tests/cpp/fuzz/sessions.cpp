// Each workload's session: the same work however the stream is cut, and no more memory, output or time than the input
// can ask for.
#include "lib/session/session.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {
namespace {

constexpr std::array<std::size_t, 4> frame_limits{1 << 20, 64, 300, 17 << 10};
constexpr std::size_t heap_beside = 64 << 10;
constexpr std::size_t heap_per_byte = 160;  // a request of http has 18 bytes at least, and several effects
constexpr std::size_t output_per_byte = 8;  // a request of http has 18 bytes at least, and its reply some 80
constexpr std::size_t output_beside = 200;  // a refusal
constexpr auto longest_request = std::chrono::seconds{20};  // of web: ten of waiting, ten of computing
constexpr std::size_t largest_web_reply = 64 << 10;         // by --max-frame: its requests state the size of a reply

/// The requests of a session: adjacent writes joined, as where a server read twice it may write twice.
struct Done {
  std::string trace;
  std::size_t output = 0;
  std::chrono::nanoseconds time{0};
  bool in_a_write = false;
  Totals totals;

  void add(const Effects& effects, WriteMode mode) {
    for (const Effect& effect : effects) {
      const bool writes = effect.kind == Effect::Kind::write;
      if (!writes || !in_a_write) trace.push_back(static_cast<char>('A' + static_cast<int>(effect.kind)));
      in_a_write = writes;
      if (writes) {
        trace.append(effects.bytes(effect));
        output += effect.size;
      } else if (effect.kind == Effect::Kind::broadcast) {
        for_each_part(*effect.frame, mode, [&](std::string_view part) { trace.append(part).push_back('|'); });
        output += effect.frame->bytes.size();
      } else if (effect.kind != Effect::Kind::close) {
        std::array<char, 24> digits;
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), effect.duration.count()).ptr;
        trace.append(digits.data(), end);
        must(effect.duration.count() > 0, "a service time is above 0");
        time += effect.duration;
      }
    }
  }
};

template <typename Feed>
Done served(const SessionOptions& options, WriteMode mode, Feed&& feed) {
  static Counters counters;  // 64 shards: dear to make
  const Totals before = counters.totals();
  Done done;
  Effects effects{mode};
  const auto session = make_session(options, counters);
  const auto take = [&] {
    done.add(effects, mode);
    effects.clear();
  };
  feed([&](std::string_view piece) {
    session->receive(piece, effects);
    take();
    return true;
  });
  session->end(effects);
  take();
  const Totals after = counters.totals();
  done.totals.requests = after.requests - before.requests;
  done.totals.protocol_errors = after.protocol_errors - before.protocol_errors;
  done.totals.bytes_in = after.bytes_in - before.bytes_in;
  return done;
}

template <Workload workload>
void run(const Input& input) {
  SessionOptions options;
  options.workload = workload;
  options.max_frame = frame_limits[input.choice() & 3];
  if (workload == Workload::web) options.max_frame = std::min(options.max_frame, largest_web_reply);
  options.service_time = std::chrono::microseconds{input.choice() & 4 ? 7 : 0};
  options.service_kind = input.choice() & 8 ? ServiceKind::cpu : ServiceKind::wait;
  const WriteMode mode = input.choice() & 16 ? WriteMode::split : WriteMode::gathered;
  const std::size_t size = input.rest().size();

  const std::size_t before = heap_in_use();
  forget_peak();
  const Done whole = served(options, mode, [&](auto take) { take(input.rest()); });
  const std::size_t replies = workload == Workload::web ? whole.totals.requests * options.max_frame : 0;
  must(heap_peak() - before <= heap_beside + heap_per_byte * size + 4 * replies, "memory is bounded by the input");
  must(whole.output <= output_beside + output_per_byte * size + replies, "output is bounded by the input");
  must(whole.time <= longest_request * (1 + static_cast<std::int64_t>(size / 4)), "time is bounded by the requests");
  must(whole.totals.bytes_in == size, "bytes are counted");
  must(whole.totals.protocol_errors <= 1, "a stream breaks once");

  const Done cut = served(options, mode, [&](auto take) { input.each_piece(take); });
  must(whole.trace == cut.trace, "the effects are the same however the stream is cut");
  must(whole.totals.protocol_errors == cut.totals.protocol_errors, "errors are the same however the stream is cut");
  must(workload == Workload::echo || whole.totals.requests == cut.totals.requests,
       "requests are the same however the stream is cut");
}

template <Workload workload>
std::vector<std::string> seeds() {
  return golden_streams(to_string(workload));
}

std::vector<std::string> web_seeds() {
  const std::string stamp = "0000002a0000000000070badcafe";
  const auto get = [](const std::string& target) { return "GET /" + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; };
  const std::string post = "POST /items HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
  return {get(stamp + "?wait=500us&cpu=20us&size=2048") + get(stamp), post + get("items"),
          get(stamp + "?chunks=3&every=10us&size=64") + get(stamp),
          "HEAD /" + stamp + "?size=64 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + post};
}

const Target echo{"session-echo", seeds<Workload::echo>, run<Workload::echo>};
const Target lines{"session-lines", seeds<Workload::lines>, run<Workload::lines>};
const Target rpc{"session-rpc", seeds<Workload::rpc>, run<Workload::rpc>};
const Target chat{"session-chat", seeds<Workload::chat>, run<Workload::chat>};
const Target http{"session-http", seeds<Workload::http>, run<Workload::http>};
const Target web{"session-web", web_seeds, run<Workload::web>};

}  // namespace
}  // namespace netdyno::fuzz
