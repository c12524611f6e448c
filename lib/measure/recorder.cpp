#include "lib/measure/recorder.hpp"

#include <numeric>

namespace netdyno::load {
namespace {

void add_counts(ConnectCounts& to, const ConnectCounts& from) {
  to.established += from.established;
  to.refused += from.refused;
  to.timed_out += from.timed_out;
  to.reset += from.reset;
  to.other += from.other;
  to.closed_after_reply += from.closed_after_reply;
}

void add_counts(MessageCounts& to, const MessageCounts& from) {
  to.due += from.due;
  to.sent += from.sent;
  to.expected += from.expected;
  to.received += from.received;
  to.duplicated += from.duplicated;
  to.reordered += from.reordered;
  to.corrupt += from.corrupt;
  to.late += from.late;
  to.unexpected += from.unexpected;
  to.resent += from.resent;
}

void add_counts(ByteCounts& to, const ByteCounts& from) {
  to.sent += from.sent;
  to.received += from.received;
  to.expected += from.expected;
}

void add_counts(ErrorCounts& to, const ErrorCounts& from) {
  to.timeout += from.timeout;
  to.closed_by_server += from.closed_by_server;
  to.reset += from.reset;
  to.protocol += from.protocol;
}

constexpr std::size_t most_kinds = 8;

}  // namespace

void Faults::note(std::string_view what, Population population, Nanos moment, std::uint64_t count) {
  const auto known =
      std::ranges::find_if(kinds, [&](const auto& kind) { return kind.what == what && kind.population == population; });
  if (known != kinds.end()) {
    known->count += count;
    known->first = std::min(known->first, moment);
  } else if (kinds.size() < most_kinds) {
    kinds.push_back({std::string{what}, population, count, moment});
  } else {
    others[static_cast<std::size_t>(population)] += count;
  }
}

void Faults::add(const Faults& other) {
  for (const FaultKind& kind : other.kinds) note(kind.what, kind.population, kind.first, kind.count);
  for (std::size_t i = 0; i < population_count; ++i) others[i] += other.others[i];
  std::ranges::sort(kinds, {}, &FaultKind::first);
}

std::uint64_t Faults::count(Population population) const {
  std::uint64_t sum = others[static_cast<std::size_t>(population)];
  for (const FaultKind& kind : kinds) sum += kind.population == population ? kind.count : 0;
  return sum;
}

std::uint64_t Faults::count_of_others() const { return std::accumulate(others.begin(), others.end(), std::uint64_t{}); }

void Handshakes::add(const Handshakes& other) {
  times.add(other.times);
  resumed += other.resumed;
  if (protocol.empty()) protocol = other.protocol;
  if (cipher.empty()) cipher = other.cipher;
}

std::uint64_t Figures::count(Population population) const {
  switch (population) {
    case Population::messages:
      return messages.due;
    case Population::replies:
      return messages.received + messages.unexpected + messages.corrupt;
    case Population::connects:
      return connections.attempted();
    case Population::connections:
      break;
  }
  return connections.established;
}

void Figures::add(const Figures& other) {
  add_life(other);
  response.add(other.response);
  service.add(other.service);
  own_lag.add(other.own_lag);
  blocked_lag.add(other.blocked_lag);
  receive_lag.add(other.receive_lag);
  kernel_timed += other.kernel_timed;
  chunk_lag.add(other.chunk_lag);
  chunks_in_window += other.chunks_in_window;
  connection.add(other.connection);
  connected_in_window += other.connected_in_window;
  scheduled_in_window += other.scheduled_in_window;
  sent_in_window += other.sent_in_window;
  completed_in_window += other.completed_in_window;
  wrong_in_window += other.wrong_in_window;
  completed_service_ns += other.completed_service_ns;
  service_beyond_ns += other.service_beyond_ns;
  response_beyond_ns += other.response_beyond_ns;
  late_in_window += other.late_in_window;
  in_flight_ns += other.in_flight_ns;
  given_up_service_ns += other.given_up_service_ns;
  given_up_response_ns += other.given_up_response_ns;
  late_responses += other.late_responses;
  late_response_ns += other.late_response_ns;
  steps.resize(std::max(steps.size(), other.steps.size()));
  for (std::size_t i = 0; i < other.steps.size(); ++i) {
    steps[i].response.add(other.steps[i].response);
    steps[i].sent += other.steps[i].sent;
    steps[i].completed += other.steps[i].completed;
    steps[i].late += other.steps[i].late;
    steps[i].errors += other.steps[i].errors;
  }
}

void Figures::add_life(const Figures& other) {
  connect.add(other.connect);
  add_counts(connections, other.connections);
  add_counts(messages, other.messages);
  add_counts(bytes, other.bytes);
  add_counts(errors, other.errors);
  if (other_connect_error == 0) other_connect_error = other.other_connect_error;
  socket_drops += other.socket_drops;
  early_chunks += other.early_chunks;
  for (const auto& [status, count] : other.statuses) statuses[status] += count;
  faults.add(other.faults);
  handshakes.add(other.handshakes);
  if (first_exchange.sent.empty()) first_exchange = other.first_exchange;
}

void Recorder::set_window(const Window& window) {
  window_ = window;
  slot_ = 0;
  slot_end_ = std::min(window.start + timeline_.interval(), window.end);
}

void Recorder::deliver_slot() {
  timeline_.deliver(slot_, slot_responses_, slot_errors_);
  slot_responses_.clear();
  slot_errors_ = 0;
  ++slot_;
  slot_end_ = slot_ < timeline_.size() ? std::min(slot_end_ + timeline_.interval(), window_.end) : never;
}

void Recorder::finish() {
  roll(window_.end);
  count_in_flight(window_.end, 0);
}

}  // namespace netdyno::load
