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

Worker::Worker(const LoadPlan& plan, const ThreadShare& share, Control& control, Timeline& timeline)
    : plan_(plan),
      control_(control),
      codec_(make_codec(plan)),
      schedule_(make_schedule(plan, share.speakers(plan))),
      transport_(make_transport(plan, share)),
      recorder_(timeline),
      sender_(plan, share, *transport_, *codec_, clock_, recorder_),
      clients_(share),
      connecting_(plan, clients_, control, *transport_, sender_, recorder_),
      matching_(plan, clients_, control, *codec_, recorder_),
      streams_(*codec_),
      peer_(make_peer({plan, control, clients_, *transport_, sender_, connecting_, matching_, recorder_, *this})),
      by_kernel_(plan.ends_times_with_stamps()),
      late_reads_(by_kernel_ && plan.spin != Spin::on),
      joined_(plan.write_due == WriteDue::joined) {
  if (carries_messages(plan.url)) reader_.emplace(*codec_);
}

void Worker::run() {
  // Timers of this thread fire when they are due: the default slack is 50 us (prctl(2), PR_SET_TIMERSLACK).
  prctl(PR_SET_TIMERSLACK, 1UL);
  give_way_to_the_main_thread();
  // Not with messages: ZeroMQ's own threads use the sockets, too, and a UDP socket that a server in this process closes
  // would stay open in the copy.
  if (!carries_messages(plan_.url)) keep_descriptors_to_oneself();
  lookout_ = lookout();
  reply_lookout_ = reply_lookout();
  connecting_.connect_all(*this);
  connecting_.await_start(*this);
  for (Nanos start = control_.read_start(); start != never; start = await_next_slice(start)) measure(start);
  for (const Connection& connection : clients_.connections)
    recorder_.figures.connections.timed_out += connection.state == Connection::State::returning;
  recorder_.figures.socket_drops = transport_->socket_drops();
  if (const Handshakes* handshakes = transport_->handshakes()) recorder_.figures.handshakes = *handshakes;
  settle(!plan_.turns || control_.does_last_slice_count());
  control_.reach(Control::Milestone::finished);
  if (plan_.linger > 0) std::this_thread::sleep_for(std::chrono::nanoseconds{plan_.linger});
  for (std::uint32_t number = 0; number < clients_.size(); ++number) transport_->close(number);
}

/// Sleeps until a line says when the next slice begins, or that none does. What the server sends meanwhile is heard.
Nanos Worker::await_next_slice(Nanos last) {
  if (!plan_.turns) return never;
  const bool stuck = clients_.waiting > 0 || clients_.open == 0 || (is_chat() && control_.has_owed_deliveries());
  spent_ = true;  // what comes between slices calls for no message
  control_.end_slice(recorder_.figures.messages.sent, stuck);
  while (control_.read_start() == last) {
    if (stuck) {
      control_.wait_for_next_start(last);  // an answer would send what was given up
    } else {
      transport_->wait(never, *this);
    }
  }
  if (control_.read_start() != never) settle(control_.does_last_slice_count());
  return control_.read_start();
}

void Worker::settle(bool counts) {
  counts ? figures_.add(recorder_.figures) : figures_.add_life(recorder_.figures);
  recorder_.figures = {};
}

void Worker::measure(Nanos start) {
  LoadPlan of_slice = plan_;
  of_slice.seed += control_.read_slice_number() << 32;  // far from the seeds that a user counts up
  // The windows of all slices share one even schedule: restarted, each would lack the same part of a message.
  const Nanos elapsed = plan_.turns ? static_cast<Nanos>(control_.read_slice_number()) * plan_.duration : 0;
  schedule_ = make_schedule(of_slice, clients_.share.speakers(plan_), elapsed);
  intended_ = 0;
  spent_ = false;
  may_queue_ = true;
  queued_.clear();
  queued_at_ = 0;
  window_ = {start + plan_.warmup, start + plan_.warmup + plan_.duration};
  boundary_ = window_.start;
  give_up_ = window_.end + plan_.timeout;
  patience_ = plan_.remakes_connections() ? std::min(plan_.timeout, plan_.connect_timeout) : plan_.timeout;
  expire_at_ = start + patience_;
  recorder_.set_window(window_);
  std::vector<Nanos> ends;
  for (Nanos end = window_.start; const RateStep& step : plan_.steps) ends.push_back(end += step.length);
  recorder_.set_steps(std::move(ends));
  set_slow_readers_apart();
  if (is_chat()) sender_.set_recipients(matching_.recipients());
  matching_.begin(window_, *schedule_);
  transport_->sample_arrivals(0);  // the load's reads count, not those before it
  schedule_->start(start);

  while (clients_.open > 0) {
    now_ = clock_.turn();
    heed_early_end();
    if (now_ >= boundary_) cross_boundary();
    send_due(plan_.round > 0 ? std::numeric_limits<int>::max() : sends_between_waits);
    if (spent_ && !reported_ && ends_with_the_count()) continue;
    // What a schedule still asks for by then, the generator could not send; that is not the rate that was asked for.
    if (now_ >= give_up_ || (now_ >= window_.end && !is_due() && drained())) break;
    if (now_ >= expire_at_) expire_some();
    if (now_ >= connecting_.next_try()) connecting_.try_again(now_, *this);
    slow_readers_.read(now_);
    recorder_.roll(now_);
    tell_progress();
    if (plan_.poll_every > 0) {
      rest();
      if (!transport_->wait(0, *this)) looks_left_ = 0;
      continue;
    }
    const Nanos until = next_wakeup(give_up_);
    if (reply_lookout_.looks() && looks_for_replies(until)) continue;
    if (may_read_later(until)) {
      sleep_and_read(until);
      continue;
    }
    const bool spinning = until <= now_ && !has_to_send();
    if (transport_->wait(until, *this) || until == never) continue;
    const Nanos woken_at = now_ns();
    if (spinning) spun_ += woken_at - now_;
    if (until > now_ && woken_at >= until) lookout_.woken(woken_at - until);
  }
  finish();
}

void Worker::heed_early_end() {
  const Nanos end = control_.read_early_end();
  if (end < window_.end) end_window(end);
  give_up_ = std::min(give_up_, control_.read_give_up());
}

void Worker::end_window(Nanos end) {
  window_ = {std::min(window_.start, end), end};
  give_up_ = window_.end + plan_.timeout;
  if (boundary_ != never) boundary_ = std::min(boundary_, end);
  recorder_.end_window(end);
  matching_.end_window(window_);
}

/// From here on, what they receive counts as no answer, and how they end is no error.
void Worker::set_slow_readers_apart() {
  if (plan_.slow_readers == 0) return;
  for (std::uint32_t number = clients_.share.speakers(plan_).size(); number < clients_.size(); ++number) {
    if (!clients_[number].open()) continue;
    slow_readers_.add(transport_->release(number), clock_.turn());
    clients_[number].state = Connection::State::gone;
    --clients_.open;
    --clients_.joined;
  }
}

/// Sleeps until the sockets are to be looked at again, once all of them have been. What is due is sent before.
void Worker::rest() {
  if (has_to_send()) return;
  if (looks_left_ > 0) {
    --looks_left_;
    return;
  }
  look_at_ = std::max(look_at_ + plan_.poll_every, now_);
  const Nanos until = std::min(look_at_, boundary_);
  const timespec wake_time{until / one_second, until % one_second};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_time, nullptr);
  looks_left_ = clients_.size() / connections_a_look;
  may_queue_ = true;
}

/// A timer wakes a thread some time after the moment it was set for, so the thread wakes before and keeps looking
/// (docs/adr/wake-early.md). For half of the time at most, and not where it would take the core of the server.
Lookout Worker::lookout() const {
  if (plan_.spin == Spin::off || online_cores() <= plan_.threads) return {};
  const double most_hz = plan_.steps.empty() ? plan_.rate_hz.value_or(0) : fastest_hz(plan_.steps);
  const auto gap = plan_.rate_hz ? static_cast<Nanos>(1e9 / most_hz * clients_.share.threads) : plan_.round;
  return {timer_lateness(), gap / 2, plan_.spin == Spin::automatic};
}

/// Not of servers of this project: their trials are all made without it.
ReplyLookout Worker::reply_lookout() const {
  const bool waits_for_replies = plan_.is_foreign() && plan_.arrivals == Arrivals::closed && plan_.round == 0;
  if (!waits_for_replies || plan_.spin == Spin::off || online_cores() <= plan_.threads) return {};
  return {true, plan_.spin == Spin::automatic};
}

bool Worker::looks_for_replies(Nanos until) {
  if (transport_->wait(0, *this)) return true;
  const Nanos began = now_ns();
  const Nanos end = std::min(until, began + ReplyLookout::length);
  bool found = false;
  Nanos last_look = began;
  for (Nanos next = began; !found && next < end; next = now_ns()) {
    last_look = next;
    found = transport_->wait(0, *this);
  }
  spun_ += last_look - began;  // what was found then is work
  reply_lookout_.ended(found);
  return found;
}

/// Whether nothing that may come before `until`, or soon after a message, calls for an answer: no connection waits to
/// send.
bool Worker::may_read_later(Nanos until) {
  if (std::min(until, late_reads_.until()) <= now_ || clients_.waiting == clients_.overdue || has_to_send())
    return false;
  for (; !held_.empty() && !is_held(held_.back()); held_.pop_back()) clients_[held_.back()].held = false;
  return held_.empty();
}

/// Reads what is at hand before what is due is sent, as a connection may be at its end. The thread wakes as much
/// earlier as that takes.
void Worker::sleep_and_read(Nanos until) {
  const Nanos moment = std::min(until, late_reads_.until());
  const timespec wake_time{moment / one_second, moment % one_second};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_time, nullptr);
  transport_->wait(0, *this);
  if (const Nanos now = now_ns(); now >= moment) lookout_.woken(now - moment);
}

/// Something waits on this connection for a place, for room, or for a connection.
bool Worker::is_held(std::uint32_t number) const {
  const Connection& connection = clients_[number];
  return !connection.gone() && (connection.blocked || connection.flight.unsent() > 0);
}

void Worker::note_held(std::uint32_t number) {
  if (!late_reads_.allowed() || clients_[number].held || !is_held(number)) return;
  clients_[number].held = true;
  held_.push_back(number);
}

void Worker::cross_boundary() {
  std::vector<CpuTime> cpu = transport_->own_threads();
  cpu.insert(cpu.begin(), thread_cpu());
  cpu.front().spun_s = seconds(spun_);
  if (boundary_ == window_.start) {
    cpu_ = cpu;
    transport_->sample_arrivals(plan_.warmup);
    boundary_ = window_.end;
    if (window_.start < window_.end) return;  // else it ended before it began, and this is its end, too
  }
  std::ranges::transform(cpu, cpu_, cpu_.begin(), std::minus<>{});
  boundary_ = never;
}

Nanos Worker::next_wakeup(Nanos give_up) const {
  Nanos next = std::min({boundary_, expire_at_, give_up, slow_readers_.next(), connecting_.next_try()});
  if (schedule_->next().intended < window_.end && !spent_)
    next = std::min(next, schedule_->next().intended - lookout_.early());
  if (queued_at_ < queued_.size()) next = std::min(next, now_);
  // What other threads received ends the drain of a chat too.
  if ((matching_.draining() && is_chat()) || reported_) next = std::min(next, now_ + drain_check);
  return next;
}

bool Worker::is_due() const {
  const Nanos next = schedule_->next().intended;
  return next <= now_ && next < window_.end && !spent_;
}

/// Whether the next message may be sent: --count is of those that are meant for the window.
bool Worker::claim_from_count(Nanos intended) {
  if (plan_.count == 0 || intended < window_.start) return true;
  spent_ = !control_.claim_message();
  return !spent_;
}

/// All messages of this thread are answered, or given up.
bool Worker::ends_with_the_count() {
  if (clients_.waiting != clients_.overdue) return false;  // what was given up is waited for after the window, as ever
  report_answered();
  return true;
}

/// The last thread to report ends the window for all, after the last answer of each.
void Worker::report_answered() {
  reported_ = true;
  if (control_.report_answered()) end_for_all(now_ns() + 1);
}

void Worker::end_for_all(Nanos moment) {
  const Nanos end = std::max(moment, window_.start);
  if (end < window_.end) control_.end_window(end);
}

void Worker::send_due(int most) {
  if (joined_) return send_joined(most);
  while (most > 0 && is_due()) {
    const std::uint32_t number = schedule_->next().connection;
    for (; most > 0 && is_due() && schedule_->next().connection == number; --most)
      if (!queue_next()) break;  // what it has taken by now is still to be sent
    send_queued(number);
  }
}

/// Sends what answers call for, while others may have come. Joined, it waits for the turn of the loop.
void Worker::send_between_events() {
  if (!joined_) send_due(sends_between_events);
}

/// All that is due joins the queues of its connections before anything leaves, so that what one of them has leaves in
/// one call. Some connections at a time: receiving must not starve.
void Worker::send_joined(int most) {
  if (queued_at_ == queued_.size()) queue_all_due();
  for (; most > 0 && queued_at_ < queued_.size(); --most) send_queued(queued_[queued_at_++]);
}

/// Once a look, where there are looks: what becomes due while the others are sent waits for the next one.
void Worker::queue_all_due() {
  queued_.clear();
  queued_at_ = 0;
  if (!may_queue_) return;
  may_queue_ = plan_.poll_every == 0;
  while (is_due()) {
    const std::uint32_t number = schedule_->next().connection;
    const bool had_some = clients_[number].flight.unsent() > 0;  // it is queued, or something else will send them
    if (!queue_next()) return;
    if (!had_some && clients_[number].flight.unsent() > 0) queued_.push_back(number);
  }
}

/// The next message of the schedule joins the queue of its connection. False where --count is exhausted.
bool Worker::queue_next() {
  if (!claim_from_count(schedule_->next().intended)) return false;
  const Arrival arrival = schedule_->take();
  Connection& connection = clients_[arrival.connection];
  recorder_.scheduled(arrival.intended);
  if (connection.gone()) {
    ++recorder_.figures.errors.timeout;  // it will never have an answer
    recorder_.error(now_);
    return true;
  }
  connection.flight.intend(arrival.intended);
  ++clients_.waiting;
  ++intended_;
  return true;
}

void Worker::send_queued(std::uint32_t number) {
  Connection& connection = clients_[number];
  if (connection.open()) {
    sender_.push(number, connection);
  } else if (connection.state == Connection::State::left && connection.flight.unsent() > 0) {
    connecting_.come_back(number, *this);
  }
  late_reads_.sent(clock_.now());
  note_held(number);
}

/// Whether something can be sent without another look.
bool Worker::has_to_send() const {
  if (queued_at_ < queued_.size()) return true;
  return is_due() && (!joined_ || may_queue_);
}

/// Waits for what a stream still holds, which comes before the rest. A message that is overdue has been lost.
bool Worker::has_all_answers() const { return clients_.waiting == (reader_ ? clients_.overdue : 0); }

/// Everything that was meant to be sent has its answers. Only after the end of the window.
bool Worker::drained() {
  if (!is_chat()) return has_all_answers();
  if (!matching_.draining()) matching_.begin_drain(intended_);
  return control_.is_all_delivered();
}

void Worker::finish() {
  if (plan_.count > 0 && !reported_) report_answered();  // without a connection it sends no more
  now_ = clock_.turn();
  if (clients_.open == 0 && now_ < window_.end) control_.report_disconnected(now_);
  heed_early_end();
  while (boundary_ != never) cross_boundary();
  if (!matching_.draining()) drained();
  for (std::uint32_t number = 0; number < clients_.size(); ++number) {
    if (!clients_[number].gone()) recorder_.figures.errors.timeout += peer_->give_up_all(number, now_);
  }
  matching_.end();
  recorder_.finish();
  tell_progress();
}

void Worker::tell_progress() {
  completed_.store(recorder_.figures.completed_in_window, std::memory_order_relaxed);
  answered_.store(recorder_.figures.response.count(), std::memory_order_relaxed);
}

/// Looks for messages that have waited too long; a few connections at a time, so that ten thousand do not delay what
/// is due meanwhile. In a closed loop the next message goes out instead.
void Worker::expire_some() {
  const std::uint32_t size = clients_.size();
  const std::uint32_t count = std::min(connections_looked_at_once, size);
  for (std::uint32_t i = 0; i < count; ++i, expire_next_ = (expire_next_ + 1) % size) {
    Connection& connection = clients_[expire_next_];
    if (connecting_.too_long(connection, now_)) {
      transport_->close(expire_next_);
      connect_failed(expire_next_, ConnectFailure::timed_out, 0, "");  // no event: nothing has been said of it
    }
    if (connection.gone()) continue;
    const auto [expired, with_unsent] = peer_->give_up_late(expire_next_, now_);
    spent_ = spent_ || with_unsent;
    note_held(expire_next_);
    if (expired == 0) continue;
    recorder_.figures.errors.timeout += expired;
    recorder_.error(now_, expired);
    for (std::uint64_t k = 0; k < expired && now_ < window_.end; ++k) schedule_->answered(expire_next_, now_);
  }
  expire_at_ = now_ + std::max<Nanos>(1'000'000, patience_ / 10 * count / size);
}

/// How long what was just stamped with now_ had been there. The stamp comes first: what this takes is in no response
/// time.
Nanos Worker::lag_since(KernelStamp arrived) {
  if (!arrived) return never;
  const auto arrived_at = wall_clock_.monotonic(*arrived, WallClock::read());
  return arrived_at && *arrived_at <= now_ ? now_ - *arrived_at : never;
}

/// The times of what is decoded next end with its stamp where they are to and there is one, else with now_, and the lag
/// is in them.
void Worker::time_what_came(std::uint32_t number, KernelStamp arrived) {
  const Nanos lag = lag_since(arrived);
  const bool stamped = by_kernel_ && lag != never;
  late_reads_.note(stamped);
  matching_.arrived(number, stamped ? now_ - lag : now_, stamped);
  matching_.lagging(stamped ? never : lag);
}

void Worker::on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) {
  if (reader_) return on_messages(number, {&bytes, 1}, {&arrived, 1});
  now_ = clock_.now();
  time_what_came(number, arrived);
  recorder_.figures.bytes.received += bytes.size();
  if (number == 0) FirstExchange::note(recorder_.figures.first_exchange.received, bytes);
  const bool good = streams_.receive(clients_[number].decoder, bytes, matching_);
  late_reads_.note(!clients_[number].decoder);
  peer_->received(number, good, now_);
  note_held(number);
  send_between_events();
}

/// Answers that came together are timed together, and what they call for is sent when all are read: in one batch.
void Worker::on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                         std::span<const KernelStamp> arrived) {
  now_ = clock_.now();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    time_what_came(number, arrived.empty() ? KernelStamp{} : arrived[i]);
    recorder_.figures.bytes.received += messages[i].size();
    if (number == 0) FirstExchange::note(recorder_.figures.first_exchange.received, messages[i]);
    reader_->receive(messages[i], matching_);
  }
  send_between_events();
}

void Worker::on_connected(std::uint32_t number) { connecting_.connected(number); }

void Worker::on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) {
  connect_failed(number, failure, error, std::string{transport_->why()});
}

void Worker::connect_failed(std::uint32_t number, ConnectFailure failure, int error, const std::string& why) {
  const bool returning = clients_[number].state == Connection::State::returning;
  connecting_.failed(number, failure, error);
  now_ = clock_.now();
  if (!why.empty()) recorder_.figures.faults.note(why, Population::connects, now_);
  if (returning) peer_->reconnect_failed(number, failure, !why.empty(), now_);
}

void Worker::on_writable(std::uint32_t number) { sender_.writable(number, clients_[number]); }

void Worker::on_closed(std::uint32_t number, CloseReason reason) {
  now_ = clock_.now();
  late_reads_.note(false);  // the kernel does not say when, and it may be the end of a reply
  peer_->closed(number, reason, std::string{transport_->why()}, now_);
  note_held(number);
  send_between_events();
}

}  // namespace netdyno::load
