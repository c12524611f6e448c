#include "servers/_shared/uring/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace netdyno {
namespace {

/// The bytes that the server reads from a client before the last is answered. As much as a few reads; from there on
/// it stays in the kernel's buffers, and holds back the client.
constexpr std::size_t most_kept = 64 << 10;

/// IOV_MAX: what one sendmsg(2) takes.
constexpr std::size_t most_gathered = 1024;

}  // namespace

UringConnection::UringConnection(UniqueFd fd, RingIo& io, const ServerOptions& options, Counters& counters)
    : effects(options.write_mode),
      fd_(std::move(fd)),
      io_(io),
      options_(options),
      counters_(counters),
      session_(make_session(options, counters)) {}

// --- input -----------------------------------------------------------------------------------------------------------

bool UringConnection::receive() {
  effects.clear();
  if (!kept_.empty()) {
    const std::string bytes = kept_.pop();
    kept_bytes_ -= bytes.size();
    session_->receive(bytes, effects);
  } else if (!arrived_.empty()) {
    session_->receive(std::exchange(arrived_, {}), effects);
  } else if (ended_) {
    session_->end(effects);
  } else {
    if (!receiving_.in_flight()) ask_to_receive();
    return false;
  }
  return true;
}

void UringConnection::ask_to_receive() {
  io_.ring.ask(receiving_, [this](io_uring_sqe* entry) {
    io_uring_prep_recv_multishot(entry, fd(), nullptr, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = ReceiveBuffers::group;
  });
}

void UringConnection::stop_receiving() {
  if (receiving_.in_flight() && !cancelling_.in_flight()) io_.ring.ask_to_cancel(receiving_, cancelling_);
}

void UringConnection::on_received(Completion completion) {
  if (!leaving_) {
    if (completion.result > 0) {
      arrived_ = io_.buffers.bytes(completion);
    } else if (completion.result == 0) {
      ended_ = true;
    } else if (completion.result != -ENOBUFS && completion.result != -ECANCELED) {
      broken_ = true;
    }
    on_news();
    if (!arrived_.empty()) keep(std::exchange(arrived_, {}));
  }
  io_.buffers.give_back(completion);
  leave_if_idle();
}

void UringConnection::keep(std::string_view bytes) {
  if (leaving_ || broken_) return;
  kept_.push(std::string{bytes});
  kept_bytes_ += bytes.size();
  if (kept_bytes_ > most_kept) stop_receiving();
}

void UringConnection::on_cancelled(Completion completion) {
  // It may be found at work, and then goes on (io_uring_prep_cancel(3), EALREADY).
  if (leaving_ && completion.result != 0) stop_receiving();
  leave_if_idle();
}

// --- output ----------------------------------------------------------------------------------------------------------

void UringConnection::send(std::string_view bytes) {
  queue({bytes});
  start_sending();
}

bool UringConnection::post(const SharedFrame& frame) {
  if (!member || broken_) return false;
  for_each_part(*frame, options_.write_mode, [&](std::string_view bytes) { queue({bytes, frame}); });
  outbox_held_ += frame_overhead;
  if (outbox_held_ > options_.outbox_limit && stuck() && !takes_more(fd())) {
    counters_.add_slow_closed();
    give_up();
  }
  return !broken_ && !sending_.in_flight() && !std::exchange(flush_due_, true);
}

void UringConnection::flush() {
  flush_due_ = false;
  start_sending();
}

void UringConnection::queue(Part part) {
  if (broken_) return;
  outbox_held_ += part.bytes.size();
  outbox_.push(std::move(part));
}

/// One send of all that is queued (gathered and joined), or of the part at the front (split, or single).
void UringConnection::start_sending() {
  if (broken_ || sending_.in_flight() || outbox_.empty()) return;
  const bool part_by_part = options_.write_mode == WriteMode::split || options_.delivery_mode() == DeliveryMode::single;
  const std::size_t most = part_by_part ? 1 : most_gathered;
  const std::size_t count = std::min(most, outbox_.size());
  if (count < outbox_.size()) io_.more_to_send = true;
  asked_to_send_ = io_.ring.submits();
  if (count == 1) {
    const std::string_view bytes = outbox_[0].bytes;
    io_.ring.ask(sending_, [&](io_uring_sqe* entry) {
      io_uring_prep_send(entry, fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    });
    return;
  }
  gathered_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes = outbox_[i].bytes;
    gathered_.push_back({const_cast<char*>(bytes.data()), bytes.size()});
  }
  message_.msg_iov = gathered_.data();
  message_.msg_iovlen = count;
  io_.ring.ask(sending_, [this](io_uring_sqe* entry) { io_uring_prep_sendmsg(entry, fd(), &message_, MSG_NOSIGNAL); });
}

void UringConnection::on_sent(Completion completion) {
  if (completion.result >= 0) {
    note_taken(static_cast<std::size_t>(completion.result));
  } else if (completion.result != -EAGAIN && completion.result != -EINTR) {
    broken_ = true;
  }
  start_sending();
  if (all_sent() && !leaving_) on_news();
  leave_if_idle();
}

void UringConnection::note_taken(std::size_t bytes) {
  counters_.add_bytes_out(bytes);
  outbox_held_ -= bytes;
  while (bytes > 0 && bytes >= outbox_[0].bytes.size()) {
    const Part sent = outbox_.pop();
    bytes -= sent.bytes.size();
    if (sent.ends_frame()) outbox_held_ -= frame_overhead;
  }
  if (bytes > 0) outbox_[0].bytes.remove_prefix(bytes);
}

// --- the end ---------------------------------------------------------------------------------------------------------

void UringConnection::give_up() {
  if (std::exchange(broken_, true)) return;
  shutdown(fd(), SHUT_RDWR);  // what is in flight ends by that
  // A wait ends with the completion of an operation, so there must be one.
  if (!receiving_.in_flight()) ask_to_receive();
}

void UringConnection::leave() {
  leaving_ = true;
  stop_receiving();
  leave_if_idle();
}

void UringConnection::leave_if_idle() {
  if (!leaving_ || receiving_.in_flight() || cancelling_.in_flight() || sending_.in_flight()) return;
  if (std::exchange(left_, true)) return;
  if (!broken_) end_stream(fd());
  on_left();
}

}  // namespace netdyno
