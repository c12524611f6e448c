#include "loadgen/worker.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace netdyno::load {

Worker::Worker(const LoadPlan& plan, const ThreadShare& share, Control& control, Timeline& timeline)
    : plan_(plan),
      control_(control),
      codec_(make_codec(plan)),
      transport_(make_transport(plan, share)),
      recorder_(timeline),
      writer_(plan, share, *transport_, *codec_, loop_.clock, recorder_),
      clients_(share),
      connecting_(plan, clients_, control, *transport_, writer_, recorder_),
      matching_(plan, clients_, control, *codec_, recorder_),
      parts_{plan, control, clients_, *transport_, writer_, connecting_, matching_, recorder_, loop_},
      waiting_(plan, clients_, *transport_, loop_),
      sending_(parts_, waiting_),
      receiving_(parts_, *codec_, waiting_, sending_),
      giving_up_(parts_, waiting_, sending_, receiving_) {}

void Worker::run() {
  connect();
  for (Nanos start = control_.read_start(); start != never; start = await_next_slice(start)) measure(start);
  leave();
}

void Worker::measure(Nanos start) {
  begin(start);
  while (clients_.open > 0) {
    loop_.now = loop_.clock.turn();
    end_early();
    if (loop_.now >= boundary_) cross_boundary();
    sending_.send_due(receiving_);
    if (giving_up_.report_answered_count()) continue;
    if (giving_up_.is_over()) break;
    giving_up_.give_up_late();
    if (loop_.now >= connecting_.next_try()) connecting_.try_again(loop_.now, receiving_);
    slow_readers_.read(loop_.now);
    recorder_.roll(loop_.now);
    publish_progress();
    wait();
  }
  finish();
}

void Worker::wait() {
  if (plan_.poll_every == 0) return waiting_.wait(next_wakeup(), sending_.has_to_send(), receiving_);
  if (!sending_.has_to_send() && waiting_.sleep_between_polls(boundary_)) sending_.allow_queueing();
  waiting_.poll(receiving_);
}

Nanos Worker::next_wakeup() const {
  return std::min(
      {boundary_, sending_.next_wakeup(), giving_up_.next_wakeup(), slow_readers_.next(), connecting_.next_try()});
}

void Worker::connect() {
  // Timers of this thread fire when they are due: the default slack is 50 us (prctl(2), PR_SET_TIMERSLACK).
  prctl(PR_SET_TIMERSLACK, 1UL);
  give_way_to_the_main_thread();
  // Not with messages: ZeroMQ's own threads use the sockets, too, and a UDP socket that a server in this process closes
  // would stay open in the copy.
  if (!carries_messages(plan_.url)) keep_descriptors_to_oneself();
  waiting_.choose_rules();
  connecting_.connect_all(receiving_);
  connecting_.await_start(receiving_);
}

void Worker::begin(Nanos start) {
  loop_.window = {start + plan_.warmup, start + plan_.warmup + plan_.duration};
  boundary_ = loop_.window.start;
  giving_up_.begin(start);
  recorder_.set_window(loop_.window);
  std::vector<Nanos> ends;
  for (Nanos end = loop_.window.start; const RateStep& step : plan_.steps) ends.push_back(end += step.length);
  recorder_.set_steps(std::move(ends));
  exclude_slow_readers();
  if (plan_.workload == Workload::chat) writer_.set_recipients(matching_.recipients());
  sending_.begin(schedule_slice(), start);
  matching_.begin(loop_.window, sending_.schedule());
  transport_->sample_arrivals(0);  // the load's reads count, not those before it
}

/// The windows of all slices share one even schedule: restarted, each would lack the same part of a message.
std::unique_ptr<Schedule> Worker::schedule_slice() const {
  LoadPlan of_slice = plan_;
  of_slice.seed += control_.read_slice_number() << 32;  // far from the seeds that a user counts up
  const Nanos elapsed = plan_.turns ? static_cast<Nanos>(control_.read_slice_number()) * plan_.duration : 0;
  return make_schedule(of_slice, clients_.share.select_speakers(plan_), elapsed);
}

/// From here on, what they receive counts as no answer, and how they end is no error.
void Worker::exclude_slow_readers() {
  if (plan_.slow_readers == 0) return;
  for (std::uint32_t number = clients_.share.select_speakers(plan_).size(); number < clients_.size(); ++number) {
    if (!clients_[number].open()) continue;
    slow_readers_.add(transport_->release(number), loop_.clock.turn());
    clients_[number].state = Connection::State::gone;
    --clients_.open;
    --clients_.joined;
  }
}

/// At an interrupt, or the end of a count.
void Worker::end_early() {
  const Nanos end = control_.read_early_end();
  if (end < loop_.window.end) end_window(end);
  giving_up_.limit(control_.read_give_up());
}

void Worker::end_window(Nanos end) {
  loop_.window = {std::min(loop_.window.start, end), end};
  giving_up_.end_window();
  if (boundary_ != never) boundary_ = std::min(boundary_, end);
  recorder_.end_window(end);
  matching_.end_window(loop_.window);
}

void Worker::cross_boundary() {
  std::vector<CpuTime> cpu = transport_->own_threads();
  cpu.insert(cpu.begin(), thread_cpu());
  cpu.front().spun_s = seconds(waiting_.spun());
  if (boundary_ == loop_.window.start) {
    cpu_ = cpu;
    transport_->sample_arrivals(plan_.warmup);
    boundary_ = loop_.window.end;
    if (loop_.window.start < loop_.window.end) return;  // else it ended before it began, and this is its end, too
  }
  std::ranges::transform(cpu, cpu_, cpu_.begin(), std::minus<>{});
  boundary_ = never;
}

void Worker::finish() {
  giving_up_.report_end();  // without a connection it sends no more
  loop_.now = loop_.clock.turn();
  if (clients_.open == 0 && loop_.now < loop_.window.end) control_.report_disconnected(loop_.now);
  end_early();
  while (boundary_ != never) cross_boundary();
  giving_up_.give_up_all();
  matching_.end();
  recorder_.finish();
  publish_progress();
}

/// Sleeps until a line says when the next slice begins, or that none does. What the server sends meanwhile is received.
Nanos Worker::await_next_slice(Nanos last) {
  if (!plan_.turns) return never;
  const bool is_chat = plan_.workload == Workload::chat;
  const bool stuck = clients_.waiting > 0 || clients_.open == 0 || (is_chat && control_.has_pending_deliveries());
  sending_.exhaust();  // what comes between slices calls for no message
  control_.end_slice(recorder_.figures.messages.sent, stuck);
  while (control_.read_start() == last) {
    if (stuck) {
      control_.wait_for_next_start(last);  // an answer would send what was given up
    } else {
      transport_->wait(never, receiving_);
    }
  }
  if (control_.read_start() != never) settle(control_.does_last_slice_count());
  return control_.read_start();
}

void Worker::settle(bool counts) {
  counts ? figures_.add(recorder_.figures) : figures_.add_life(recorder_.figures);
  recorder_.figures = {};
}

void Worker::leave() {
  for (const Connection& connection : clients_.connections)
    recorder_.figures.connections.timed_out += connection.state == Connection::State::returning;
  recorder_.figures.socket_drops = transport_->socket_drops();
  if (const Handshakes* handshakes = transport_->handshakes()) recorder_.figures.handshakes = *handshakes;
  settle(!plan_.turns || control_.does_last_slice_count());
  control_.reach(Control::Milestone::finished);
  if (plan_.linger > 0) std::this_thread::sleep_for(std::chrono::nanoseconds{plan_.linger});
  for (std::uint32_t number = 0; number < clients_.size(); ++number) transport_->close(number);
}

void Worker::publish_progress() {
  completed_.store(recorder_.figures.completed_in_window, std::memory_order_relaxed);
  answered_.store(recorder_.figures.response.count(), std::memory_order_relaxed);
}

}  // namespace netdyno::load
