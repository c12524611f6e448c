#include "link/relay.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "lib/cli/die.hpp"
#include "lib/measure/process.hpp"

namespace netdyno::link {
namespace {

/// How many frames are read, or written, before the other side has its turn: some 30 us' worth.
constexpr int frames_at_once = 16;

/// How many frames of each direction find their memory ready from the first: two megabytes' worth.
constexpr std::size_t frames_warm = 1024;

nlohmann::ordered_json summarize(const Histogram& values) {
  return {{"mean", values.mean()},
          {"p50", values.find_percentile(50)},
          {"p90", values.find_percentile(90)},
          {"p99", values.find_percentile(99)},
          {"p999", values.find_percentile(99.9)},
          {"max", values.max()}};
}

}  // namespace

Direction::Direction(const Terms& terms, std::uint64_t number, const Tap& from, const Tap& to)
    : line_(terms, number), from_(from), to_(to) {
  line_.warm_up(frames_warm);
}

void Direction::on_events(std::uint32_t) { readable_ = true; }

void Direction::read_some() {
  for (int left = readable_ ? frames_at_once : 0; left > 0; --left) {
    const auto space = line_.space();
    const ssize_t got = read(from_.fd(), space.data(), space.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      readable_ = false;
      return;
    }
    if (got < 0) die(fmt::format("the link's device cannot be read: {}", std::strerror(errno)));
    const auto size = static_cast<std::size_t>(got);
    if (size > Line::most_frame_bytes)
      die(fmt::format("a frame of more than {} bytes: leave the MTU of the link at 1500", Line::most_frame_bytes));
    ++counts_.frames_in;
    counts_.bytes_in += size;
    const Fate fate = line_.take(size, Clock::now());
    counts_.lost += fate == Fate::lost;
    counts_.queue_full += fate == Fate::queue_full;
    counts_.overflowed += fate == Fate::overflowed;
  }
}

void Direction::write_due(Histogram& late) {
  for (int left = frames_at_once; left > 0; --left) {
    const Clock::time_point now = Clock::now();
    if (next_due() > now) return;
    late.record((now - line_.due()).count());
    const std::string_view frame = line_.frame();
    if (write(to_.fd(), frame.data(), frame.size()) == static_cast<ssize_t>(frame.size())) {
      ++counts_.frames_out;
      counts_.bytes_out += frame.size();
    } else if (errno == EIO || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
      ++counts_.refused;  // the interface is down, or the kernel has no memory for it: a network would lose it too
    } else {
      die(fmt::format("the link's device cannot be written: {}", std::strerror(errno)));
    }
    line_.pop();
  }
}

nlohmann::ordered_json Direction::totals() const {
  return {{"frames_in", counts_.frames_in},   {"bytes_in", counts_.bytes_in}, {"frames_out", counts_.frames_out},
          {"bytes_out", counts_.bytes_out},   {"lost", counts_.lost},         {"queue_full", counts_.queue_full},
          {"overflowed", counts_.overflowed}, {"refused", counts_.refused},   {"under_way", line_.held()},
          {"unread", from_.unread()}};
}

Relay::Relay(const Terms& terms, const Tap& a, const Tap& b, int stop_signal)
    : there_(terms, 0, a, b), back_(terms, 1, b, a) {
  // Edge-triggered: a device is read until it has no more, whatever epoll says meanwhile.
  const bool watched = poller_.watch(a.fd(), EPOLLIN | EPOLLET, there_) &&
                       poller_.watch(b.fd(), EPOLLIN | EPOLLET, back_) && poller_.watch(stop_signal, EPOLLIN, *this);
  if (!watched) die(fmt::format("epoll_ctl: {}", std::strerror(errno)));
}

void Relay::run() {
  while (!ended_) {
    for (Direction* direction : {&there_, &back_}) {
      direction->read_some();
      direction->write_due(late_);
    }
    wait();
  }
}

/// Until a frame comes or is due. Where there is more to do already, it only polls.
void Relay::wait() {
  const Clock::time_point due = std::min(there_.next_due(), back_.next_due());
  const bool more = there_.readable() || back_.readable() || due <= Clock::now();
  if (!more && due != Clock::time_point::max()) poller_.set_alarm(due);
  poller_.wait(!more);
}

nlohmann::ordered_json Relay::totals() const {
  nlohmann::ordered_json json{{"a_to_b", there_.totals()}, {"b_to_a", back_.totals()}, {"late_ns", summarize(late_)}};
  json["seconds"] = std::chrono::duration<double>(Clock::now() - started_).count();
  const load::CpuTime cpu = load::thread_cpu();  // frames that come while it waits for a core are read late
  json.update({{"cpu_user_s", cpu.user_s}, {"cpu_system_s", cpu.system_s}, {"run_queue_wait_s", cpu.waited_s}});
  return json;
}

}  // namespace netdyno::link
