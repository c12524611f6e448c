#include "loadgen/connect/message_writer.hpp"

namespace netdyno::load {
namespace {

constexpr std::size_t largest_gathering = 64 << 10;
constexpr std::size_t rest_worth_keeping = 4 << 10;

}  // namespace

void MessageWriter::push(std::uint32_t number, Connection& connection, bool was_blocked) {
  while (!connection.blocked && connection.sendable() > 0) {
    gather(number, connection);
    const Nanos sent_at = clock_.now();
    const std::size_t taken = write(number);
    recorder_.figures.bytes.sent += taken;
    if (auto& first = recorder_.figures.first_exchange.sent; number == 0 && first.empty())
      FirstExchange::note(first, std::string_view{buffer_}.substr(0, ends_.front()));
    const std::size_t begun = note_begun(number, connection, taken, sent_at, was_blocked);
    if (taken == buffer_.size()) continue;
    connection.rest.assign(buffer_, taken, begun - taken);
    connection.rest_at = 0;
    connection.blocked = true;
  }
}

void MessageWriter::gather(std::uint32_t number, const Connection& connection) {
  buffer_.clear();
  ends_.clear();
  Stamp stamp{share_.global(number), connection.flight.next_to_send()};
  const std::uint64_t most = split_ ? 1 : connection.sendable();
  do {
    const std::size_t header = codec_.encode(stamp, buffer_);
    if (ends_.empty()) header_ = header;
    ends_.push_back(buffer_.size());
    ++stamp.sequence;
  } while (ends_.size() < most && buffer_.size() < largest_gathering);
}

std::size_t MessageWriter::write(std::uint32_t number) {
  const std::string_view bytes{buffer_};
  if (messages_) return transport_.send_messages(number, bytes, ends_);
  const std::size_t header = split_ ? header_ : 0;
  if (header == 0) return transport_.send(number, bytes);
  const std::size_t taken = transport_.send(number, bytes.substr(0, header));
  return taken < header ? taken : header + transport_.send(number, bytes.substr(header));
}

std::size_t MessageWriter::note_begun(std::uint32_t number, Connection& connection, std::size_t taken, Nanos sent_at,
                                      bool was_blocked) {
  std::size_t begun = 0;
  for (const std::size_t end : ends_) {
    if (taken <= begun) break;
    begun = end;
    const Stamp stamp{share_.global(number), connection.flight.next_to_send()};
    const Nanos intended = connection.flight.send(sent_at);
    recorder_.note_sent(intended, sent_at, was_blocked);
    recorder_.figures.messages.expected += recipients_;
    if (!messages_) recorder_.figures.bytes.expected += recipients_ * codec_.reply_size(stamp).value_or(0);
  }
  return begun;
}

void MessageWriter::resume(std::uint32_t number, Connection& connection) {
  connection.blocked = false;
  if (!connection.rest.empty()) {
    const std::size_t taken = transport_.send(number, std::string_view{connection.rest}.substr(connection.rest_at));
    recorder_.figures.bytes.sent += taken;
    connection.rest_at += taken;
    if (connection.rest_at < connection.rest.size()) {
      connection.blocked = true;
      return;
    }
    connection.rest.clear();
    if (connection.rest.capacity() > rest_worth_keeping) connection.rest.shrink_to_fit();
  }
  push(number, connection, true);
}

bool MessageWriter::probe(std::uint32_t number, Connection& connection, const Stamp& stamp) {
  if (connection.blocked) return false;
  buffer_.clear();
  codec_.encode(stamp, buffer_);
  const std::size_t taken = transport_.send(number, buffer_);
  recorder_.figures.bytes.sent += taken;
  if (taken == buffer_.size()) return true;
  connection.rest.assign(buffer_, taken);
  connection.rest_at = 0;
  connection.blocked = true;
  return true;
}

}  // namespace netdyno::load
