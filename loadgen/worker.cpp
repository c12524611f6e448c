#include "loadgen/worker.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

namespace netdyno::load {
namespace {

// How much is done at once before the other side gets its turn: sending must not starve receiving, nor the reverse.
constexpr int sends_between_waits = 64;  // but in rounds, where all send at the same moment
constexpr int sends_between_events = 16;
constexpr std::uint32_t connections_looked_at_once = 64;
constexpr Nanos drain_check = 5'000'000;
constexpr std::uint32_t connections_a_look = 256;  // one wait of a transport tells of so many at most (Poller)

}  // namespace

Worker::Worker(const LoadPlan& plan, const Slice& slice, Control& control, Timeline& timeline)
    : plan_(plan),
      control_(control),
      codec_(make_codec(plan)),
      schedule_(make_schedule(plan, slice.speakers(plan))),
      transport_(make_transport(plan, slice)),
      recorder_(timeline),
      sender_(plan, slice, *transport_, *codec_, clock_, recorder_),
      clients_(slice),
      connecting_(plan, clients_, control, *transport_, sender_, recorder_),
      matching_(plan, clients_, control, *codec_, *schedule_, recorder_),
      streams_(*codec_) {
  if (carries_messages(plan.url)) reader_.emplace(*codec_);
}

void Worker::run() {
  // Timers of this thread fire when they are due: the default slack is 50 us (prctl(2), PR_SET_TIMERSLACK).
  prctl(PR_SET_TIMERSLACK, 1UL);
  give_way_to_the_main_thread();
  // Not with messages: ZeroMQ's own threads use the sockets, too, and a UDP socket that a server in this process closes
  // would stay open in the copy.
  if (!carries_messages(plan_.url)) keep_descriptors_to_oneself();
  early_ = lookout();
  connecting_.connect_all(*this);
  connecting_.await_start(*this);
  const Nanos start = control_.start;
  if (start != never) measure(start);
  recorder_.figures.socket_drops = transport_->socket_drops();
  control_.reach(Control::Milestone::finished);
  if (plan_.linger > 0) std::this_thread::sleep_for(std::chrono::nanoseconds{plan_.linger});
  for (std::uint32_t number = 0; number < clients_.size(); ++number) transport_->close(number);
}

void Worker::measure(Nanos start) {
  window_ = {start + plan_.warmup, start + plan_.warmup + plan_.duration};
  boundary_ = window_.start;
  const Nanos give_up = window_.end + plan_.timeout;
  patience_ = plan_.requests_per_connection > 0 ? std::min(plan_.timeout, plan_.connect_timeout) : plan_.timeout;
  expire_at_ = start + patience_;
  recorder_.set_window(window_);
  set_slow_readers_apart();
  if (is_chat()) sender_.set_recipients(matching_.recipients());
  matching_.begin(window_);
  transport_->sample_arrivals(0);  // the load's reads count, not those before it
  schedule_->start(start);

  while (clients_.open > 0) {
    now_ = clock_.turn();
    if (now_ >= boundary_) cross_boundary();
    send_due(plan_.round > 0 ? std::numeric_limits<int>::max() : sends_between_waits);
    // What a schedule still asks for by then, the generator could not send; that is not the rate that was asked for.
    if (now_ >= give_up || (now_ >= window_.end && !is_due() && drained())) break;
    if (now_ >= expire_at_) expire_some();
    slow_readers_.read(now_);
    recorder_.roll(now_);
    completed_.store(recorder_.figures.completed_in_window, std::memory_order_relaxed);
    if (plan_.look_every > 0) {
      rest();
      if (!transport_->wait(0, *this)) looks_left_ = 0;
      continue;
    }
    const Nanos until = next_wakeup(give_up);
    const bool spinning = until <= now_ && !is_due();
    if (!transport_->wait(until, *this) && spinning) spun_ += now_ns() - now_;
  }
  finish();
}

/// From here on, what they hear is nobody's answer, and what becomes of them is no error.
void Worker::set_slow_readers_apart() {
  for (std::uint32_t number = clients_.slice.speakers(plan_).size(); number < clients_.size(); ++number) {
    if (!clients_[number].open()) continue;
    slow_readers_.add(transport_->release(number), clock_.turn());
    clients_[number].state = Connection::State::gone;
    --clients_.open;
    --clients_.joined;
  }
}

/// Sleeps until the sockets are to be looked at again, once all of them have been. What is due is sent before.
void Worker::rest() {
  if (is_due()) return;
  if (looks_left_ > 0) {
    --looks_left_;
    return;
  }
  look_at_ = std::max(look_at_ + plan_.look_every, now_);
  const Nanos until = std::min(look_at_, boundary_);
  const timespec at{until / one_second, until % one_second};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
  looks_left_ = clients_.size() / connections_a_look;
}

/// A timer wakes a thread some time after the moment it was set for, so the thread wakes before and keeps looking
/// (docs/adr/wake-early.md). For half of the time at most, and not where it would take the core of the server.
Nanos Worker::lookout() const {
  if (online_cores() <= plan_.threads) return 0;
  const auto gap = plan_.rate_hz ? static_cast<Nanos>(1e9 / *plan_.rate_hz * plan_.threads) : plan_.round;
  return std::min(timer_lateness(), gap / 2);
}

void Worker::cross_boundary() {
  std::vector<CpuTime> cpu = transport_->own_threads();
  cpu.insert(cpu.begin(), thread_cpu());
  cpu.front().spun_s = seconds(spun_);
  if (boundary_ == window_.start) {
    cpu_ = std::move(cpu);
    transport_->sample_arrivals(plan_.warmup);
    boundary_ = window_.end;
  } else {
    std::ranges::transform(cpu, cpu_, cpu_.begin(), std::minus<>{});
    boundary_ = never;
  }
}

Nanos Worker::next_wakeup(Nanos give_up) const {
  Nanos next = std::min({boundary_, expire_at_, give_up, slow_readers_.next()});
  if (schedule_->next().intended < window_.end) next = std::min(next, schedule_->next().intended - early_);
  // What other threads received ends the drain of a chat too.
  if (matching_.draining() && is_chat()) next = std::min(next, now_ + drain_check);
  return next;
}

bool Worker::is_due() const {
  const Nanos next = schedule_->next().intended;
  return next <= now_ && next < window_.end;
}

void Worker::send_due(int most) {
  while (most > 0 && is_due()) {
    const std::uint32_t number = schedule_->next().connection;
    Connection& connection = clients_[number];
    for (; most > 0 && is_due() && schedule_->next().connection == number; --most) {
      const Arrival arrival = schedule_->take();
      recorder_.scheduled(arrival.intended);
      if (connection.gone()) continue;
      connection.flight.intend(arrival.intended);
      ++clients_.waiting;
      ++intended_;
    }
    if (connection.open()) {
      sender_.push(number, connection);
    } else if (connection.state == Connection::State::left) {
      connecting_.come_back(number, *this);
    }
  }
}

/// Everything that was meant to be sent has its answers. Only after the end of the window.
bool Worker::drained() {
  // What a stream still holds comes before the rest and is waited for. A message that is overdue has been lost.
  if (!is_chat()) return clients_.waiting == (reader_ ? clients_.overdue : 0);
  if (!matching_.draining()) matching_.begin_drain(intended_);
  return control_.all_delivered();
}

void Worker::finish() {
  now_ = clock_.turn();
  while (boundary_ != never) cross_boundary();
  if (!matching_.draining()) drained();
  for (Connection& connection : clients_.connections) {
    if (connection.gone()) continue;
    recorder_.figures.connections.timed_out += connection.state == Connection::State::returning;
    recorder_.figures.errors.timeout += matching_.give_up(connection, never, now_) + connection.flight.unsent();
  }
  matching_.end();
  recorder_.finish();
  completed_.store(recorder_.figures.completed_in_window, std::memory_order_relaxed);
}

/// Looks for messages that have waited too long; a few connections at a time, so that ten thousand do not delay what
/// is due meanwhile. In a closed loop the next message goes out instead.
void Worker::expire_some() {
  const std::uint32_t size = clients_.size();
  const std::uint32_t some = std::min(connections_looked_at_once, size);
  for (std::uint32_t i = 0; i < some; ++i, expire_next_ = (expire_next_ + 1) % size) {
    Connection& connection = clients_[expire_next_];
    if (connecting_.too_long(connection, now_)) {
      transport_->close(expire_next_);
      on_connect_failed(expire_next_, ConnectFailure::timed_out, 0);
    }
    if (connection.gone()) continue;
    const std::uint64_t expired = matching_.give_up(connection, now_ - plan_.timeout, now_);
    if (expired == 0) continue;
    recorder_.figures.errors.timeout += expired;
    recorder_.error(now_, expired);
    for (std::uint64_t k = 0; k < expired && now_ < window_.end; ++k) schedule_->answered(expire_next_, now_);
  }
  expire_at_ = now_ + std::max<Nanos>(1'000'000, patience_ / 10 * some / size);
}

/// How long what was just stamped with now_ had been there. The stamp comes first: what this takes is in no response
/// time.
Nanos Worker::lag_since(KernelStamp arrived) {
  if (!arrived) return never;
  const auto at = wall_clock_.monotonic(*arrived, WallClock::read());
  return at && *at <= now_ ? now_ - *at : never;
}

void Worker::on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) {
  if (reader_) return on_messages(number, {&bytes, 1}, {&arrived, 1});
  now_ = clock_.now();
  matching_.arrived(number, now_);
  matching_.lagging(lag_since(arrived));
  recorder_.figures.bytes.received += bytes.size();
  if (!streams_.receive(clients_[number].decoder, bytes, matching_)) {
    transport_->close(number);
    ++recorder_.figures.errors.protocol;
    matching_.let_go(number, now_);
  } else if (clients_[number].served()) {
    connecting_.leave(number, *this);
  }
  send_due(sends_between_events);
}

/// Answers that came together are timed together, and what they call for is sent when all are read: in one batch.
void Worker::on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                         std::span<const KernelStamp> arrived) {
  now_ = clock_.now();
  matching_.arrived(number, now_);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    matching_.lagging(lag_since(arrived.empty() ? KernelStamp{} : arrived[i]));
    recorder_.figures.bytes.received += messages[i].size();
    reader_->receive(messages[i], matching_);
  }
  send_due(sends_between_events);
}

void Worker::on_connected(std::uint32_t number) { connecting_.connected(number); }

void Worker::on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) {
  const bool returning = clients_[number].state == Connection::State::returning;
  connecting_.failed(number, failure, error);
  if (!returning) return;
  now_ = clock_.now();
  matching_.let_go(number, now_);
}

void Worker::on_writable(std::uint32_t number) { sender_.writable(number, clients_[number]); }

void Worker::on_closed(std::uint32_t number, CloseReason reason) {
  now_ = clock_.now();
  auto& errors = recorder_.figures.errors;
  ++(reason == CloseReason::reset ? errors.reset : errors.closed_by_server);
  matching_.let_go(number, now_);
}

}  // namespace netdyno::load
