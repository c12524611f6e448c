#include "clients/_shared/journal.hpp"

#include <algorithm>
#include <utility>

namespace netdyno::client {

using load::now_ns;

Failure failure_of(const Error& error) {
  switch (error.stage) {
    case Stage::resolve:
      return Failure::resolve_failed;
    case Stage::connect:
      if (error.reason == Reason::refused) return Failure::connect_refused;
      return error.reason == Reason::timed_out ? Failure::connect_timed_out : Failure::connect_other;
    default:
      break;
  }
  switch (error.reason) {
    case Reason::timed_out:
      return Failure::response_timeout;
    case Reason::closed:
      return Failure::closed;
    case Reason::malformed:
      return Failure::protocol;
    default:
      return Failure::reset;
  }
}

Journal::Journal(const ClientPlan& plan)
    : plan_(plan),
      instances_(plan.load.connections),
      codec_(load::make_codec(plan.load)),
      timeline_(plan.load.duration, 1, plan.load.share.count > 1),
      recorder_(timeline_),
      deliveries_(plan.load.connections, 1) {}

void Journal::begin(Nanos start) {
  start_ = start;
  window_.start = start_ + plan_.load.warmup;
  window_.end = window_.start + plan_.load.duration;
  recorder_.set_window(window_);
  end_ = window_.end;
}

void Journal::end() {
  if (!begun()) begin(now_ns());  // shutdown came before all first attempts were over; the series needs a window
  end_ = std::min(end_, now_ns());
}

void Journal::finish() {
  recorder_.finish();
  completed_.store(figures().completed_in_window, std::memory_order_relaxed);
}

void Journal::count_first_attempt(Failure failure, int error) {
  auto& counts = recorder_.figures.connections;
  switch (failure) {
    case Failure::connect_refused:
      ++counts.refused;
      break;
    case Failure::connect_timed_out:
      ++counts.timed_out;
      break;
    default:
      ++counts.other;
      recorder_.figures.other_connect_error = failure == Failure::resolve_failed ? load::unresolved_name : error;
      break;
  }
}

void Caller::connected() {
  const Nanos now = now_ns();
  if (first_attempt_) {
    journal_.recorder_.figures.connect.record(now - connect_began_);
    ++journal_.recorder_.figures.connections.established;
    settle();
  }
  if (std::exchange(failed_before_, false)) ++journal_.recovered_;
  decoder_ = journal_.codec_->make_decoder();
  intended_ = now;
}

void Caller::settle() {
  first_attempt_ = false;
  ++journal_.settled_;
}

void Caller::failed(Failure failure, int error) {
  const Nanos now = now_ns();
  auto& recorder = journal_.recorder_;
  ++journal_.failures_[static_cast<std::size_t>(failure)];
  failed_before_ = true;
  if (first_attempt_) {
    journal_.count_first_attempt(failure, error);
    settle();
  }
  if (std::exchange(waiting_, false)) recorder.note_given_up(intended_, sent_, now);
  auto& errors = recorder.figures.errors;
  errors.timeout += failure == Failure::response_timeout;
  errors.closed_by_server += failure == Failure::closed;
  errors.reset += failure == Failure::reset;
  errors.protocol += failure == Failure::protocol;
  recorder.note_error(now);
}

std::string_view Caller::next() {
  auto& recorder = journal_.recorder_;
  const Stamp stamp{id_, next_++};
  buffer_.clear();
  const std::size_t header = journal_.codec_->encode(stamp, buffer_);
  sent_ = now_ns();
  intended_ = std::max(intended_, journal_.start_);
  waiting_ = true;
  recorder.note_scheduled(intended_);
  recorder.note_sent(intended_, sent_, false);
  ++recorder.figures.messages.expected;
  recorder.figures.bytes.sent += buffer_.size();
  recorder.figures.bytes.expected += journal_.codec_->reply_size(stamp).value_or(0);
  return std::string_view{buffer_}.substr(header);
}

Received Caller::receive(std::string_view bytes) {
  now_ = now_ns();
  journal_.recorder_.figures.bytes.received += bytes.size();
  verdict_ = Received::incomplete;
  return decoder_->receive(bytes, *this) ? verdict_ : Received::broken;
}

void Caller::on_reply(const Stamp& stamp, std::size_t) {
  auto& recorder = journal_.recorder_;
  if (stamp.client != id_ || stamp.sequence >= next_) return on_corrupt();
  ++recorder.figures.messages.received;
  using Verdict = load::Deliveries::Verdict;
  const Verdict verdict = journal_.deliveries_.note(id_, 0, stamp.sequence);
  if (verdict != Verdict::in_order) {
    ++(verdict == Verdict::again ? recorder.figures.messages.duplicated : recorder.figures.messages.reordered);
    return recorder.note_error(now_);
  }
  if (!waiting_ || stamp.sequence + 1 != next_) return;  // of a request that was given up; the right one may follow
  waiting_ = false;
  recorder.note_answered(intended_, sent_, now_);
  journal_.completed_.store(recorder.figures.completed_in_window, std::memory_order_relaxed);
  journal_.answered_.store(recorder.figures.response.count(), std::memory_order_relaxed);
  intended_ = now_;
  if (verdict_ != Received::broken) verdict_ = Received::answered;
}

void Caller::on_corrupt() {
  ++journal_.recorder_.figures.messages.corrupt;
  verdict_ = Received::broken;
}

}  // namespace netdyno::client
