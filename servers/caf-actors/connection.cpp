#include "connection.hpp"

#include <sys/socket.h>

#include <caf/io/receive_policy.hpp>
#include <caf/io/system_messages.hpp>
#include <caf/make_counted.hpp>
#include <cassert>
#include <chrono>
#include <utility>

#include "lib/net/send.hpp"
#include "scribe.hpp"
#include "worker.hpp"

namespace netdyno {
namespace {

/// How long a connection that is closed because of what the peer sent may take to deliver the last replies.
constexpr std::chrono::seconds linger_time{1};

}  // namespace

Connection::Connection(caf::actor_config& config, int fd, caf::actor room, Shared& shared)
    : broker(config),
      fd_(fd),
      room_(std::move(room)),
      shared_(shared),
      options_(shared.options),
      outbox_(options_.write_mode, options_.delivery_mode(), options_.outbox_limit) {}

caf::behavior Connection::make_behavior() {
  set_exception_handler(close_without_memory(shared_.counters));
  open();
  return {
      [this](const caf::io::new_data_msg& data) {
        read({data.buf.data(), data.buf.size()});
      },
      [this](const caf::io::connection_passivated_msg&) { read_end(); },
      [this](const caf::io::data_transferred_msg& sent) { note_written(sent.written, sent.remaining); },
      [this](const caf::io::connection_closed_msg&) { leave(); },
      [this](Replied& reply) { take_reply(reply); },
      [this](const Heard& heard) { deliver(heard.frames); },
      [this](const ServerEnds&) { ::shutdown(fd_, SHUT_RD); },
      [this](const LingerOver&) { leave(); },
  };
}

void Connection::on_exit() {
  worker_ = nullptr;
  room_ = nullptr;
}

void Connection::open() {
  auto& loop = static_cast<caf::io::network::default_multiplexer&>(backend());
  auto scribe = caf::make_counted<Scribe>(loop, fd_);
  set_nodelay(fd_, options_.nodelay);  // a scribe turns it on
  socket_ = scribe->hdl();
  add_scribe(std::move(scribe));
  ack_writes(socket_, true);
  worker_ = spawn<Worker, caf::linked>(caf::actor{this}, room_, shared_);
  configure_read(socket_, caf::io::receive_policy::at_most(options_.read_buffer));
}

/// While the worker is busy it reads on, once, as only a read notices a reset.
void Connection::read(std::string_view bytes) {
  if (closing_) return shared_.counters.add_bytes_in(bytes.size());
  if (!busy_ && writes_.empty()) return serve(std::string{bytes});
  held_ = bytes;
  halt(socket_);
}

void Connection::read_end() {
  ended_ = true;
  lingers_ ? leave() : go_on();
}

void Connection::serve(std::string bytes) {
  busy_ = true;
  send(worker_, BytesArrived{std::move(bytes)});
}

void Connection::take_reply(Replied& reply) {
  for (auto& bytes : reply.writes) writes_.push_back(std::move(bytes));
  busy_ = reply.next == Next::wait;
  if (reply.next == Next::close) return finish();
  send_next();
  go_on();
}

/// Back-pressure: a client that takes no replies is not served. Broadcasts are no replies: they fill the outbox.
void Connection::go_on() {
  if (busy_ || closing_ || !writes_.empty()) return;
  if (!held_.empty()) {
    serve(std::exchange(held_, {}));
    trigger(socket_);
  } else if (ended_) {
    busy_ = true;
    send(worker_, StreamEnded{});
  }
}

void Connection::deliver(const Frames& frames) {
  if (closing_) return;
  for (const SharedFrame& frame : *frames) {
    if (outbox_.push_unless_stuck(frame, fd_)) continue;
    shared_.counters.add_slow_closed();
    return leave();
  }
  send_next();
  note_if_behind();
}

/// To be called after what changes it: a delivery, or a write, also one that has filled the socket.
void Connection::note_if_behind() {
  if (!behind_ && !outbox_.much()) return;
  if (behind_ == (outbox_.much() && takes_more(fd_))) return;
  behind_ = !behind_;
  send(room_, Behind{behind_});
}

void Connection::send_next() {
  if (under_way_ > 0) return;
  if (!writes_.empty()) {
    const iovec part = part_of(writes_.front());
    return write({&part, 1});
  }
  const auto batch = outbox_.next();
  if (!batch.empty()) return write(batch);
  if (closing_) linger();
}

/// CAF sends its copy when its loop turns.
void Connection::write(std::span<const iovec> parts) {
  under_way_ = size_of(parts);
  auto& buffer = wr_buf(socket_);
  buffer.reserve(under_way_);
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const char*>(part.iov_base);
    buffer.insert(buffer.end(), bytes, bytes + part.iov_len);
  }
  flush(socket_);
}

void Connection::note_written(std::uint64_t written, std::uint64_t remaining) {
  shared_.counters.add_bytes_out(written);
  if (remaining > 0) return note_if_behind();
  assert(under_way_ > 0);
  if (!writes_.empty()) {
    writes_.pop_front();
  } else {
    outbox_.sent(under_way_);
  }
  under_way_ = 0;
  send_next();
  note_if_behind();
  go_on();
}

void Connection::finish() {
  closing_ = true;
  if (!held_.empty()) {
    shared_.counters.add_bytes_in(std::exchange(held_, {}).size());
    trigger(socket_);
  }
  send_next();
}

/// Ends our stream and reads on, without a use for it, until the peer ends its own: a close with unread bytes resets
/// the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6).
void Connection::linger() {
  if (ended_) return leave();
  lingers_ = true;
  ::shutdown(fd_, SHUT_WR);
  delayed_send(caf::actor{this}, linger_time, LingerOver{});
}

/// Closes the socket. The worker, which is linked, ends for a reason that is not normal.
void Connection::leave() { quit(caf::exit_reason::user_shutdown); }

}  // namespace netdyno
