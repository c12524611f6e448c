#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/server/fifo.hpp"
#include "lib/server/lifecycle.hpp"
#include "lib/server/outbox.hpp"
#include "lib/session/session.hpp"
#include "servers/_shared/uring/receive_buffers.hpp"
#include "servers/_shared/uring/ring.hpp"

namespace netdyno {

/// State shared by the connections of a thread.
struct RingIo {
  explicit RingIo(std::size_t read_buffer) : buffers(ring, read_buffer) {}

  Ring ring;
  ReceiveBuffers buffers;
  /// An outbox holds more than the send that was asked for takes. A server that takes in nothing until that is sent
  /// does not fill outboxes faster than they can be emptied.
  bool more_to_send = false;
};

/// A client: its socket, its session, and what waits to be sent to it. Loop's thread only.
///
/// The kernel is asked once to receive, and then says each time that something has come (multishot), also while the
/// last is not answered yet: that is kept, and beyond a bound the kernel is asked to receive no more. One send is in
/// flight at a time, so that what it could not take is sent before what follows.
class UringConnection {
 public:
  UringConnection(UniqueFd fd, RingIo& io, const ServerOptions& options, Counters& counters);

  int fd() const { return fd_.get(); }

  /// Gives the session what one read has brought, or the end; what it makes of it is in `effects` then. False when
  /// nothing is there: on_news() follows when something is. Not while effects are unfinished or their bytes unsent.
  [[nodiscard]] bool receive();

  /// `bytes` must stay until all is sent.
  void send(std::string_view bytes);
  /// Nothing waits to be sent, or nothing can be.
  bool all_sent() const { return broken_ || outbox_.empty(); }

  /// Queues a frame, to be sent by the next flush() with whatever else is queued by then. A client for which more
  /// than the outbox limit waits, and the kernel takes none, is given up and counted. True when a flush() is to be
  /// called that was not before.
  bool post(const SharedFrame& frame);
  void flush();

  bool broken() const { return broken_; }
  /// Nothing can be sent any more; on_news() follows.
  void give_up();

  /// The last call, when all is sent. on_left() follows when nothing is in flight any more.
  void leave();

  Effects effects;
  bool member = true;     // of the chat: broadcasts reach it
  std::size_t index = 0;  // in the Roster

 protected:
  ~UringConnection() = default;

  /// Something has come, or is sent, or nothing can be any more.
  virtual void on_news() = 0;
  virtual void on_left() = 0;

 private:
  struct Part {
    std::string_view bytes;
    SharedFrame keeps = {};
    bool ends_frame() const {
      return keeps && bytes.data() + bytes.size() == keeps->bytes.data() + keeps->bytes.size();
    }
  };

  void ask_to_receive();
  void stop_receiving();
  void on_received(Completion completion);
  void on_cancelled(Completion completion);
  void keep(std::string_view bytes);

  void queue(Part part);
  void start_sending();
  void on_sent(Completion completion);
  void note_taken(std::size_t bytes);
  bool stuck() const { return sending_.in_flight() && asked_to_send_ < io_.ring.submits(); }

  void leave_if_idle();

  const UniqueFd fd_;
  RingIo& io_;
  const ServerOptions& options_;
  Counters& counters_;
  const std::unique_ptr<Session> session_;

  Operation receiving_ = operation<&UringConnection::on_received>(*this);
  Operation cancelling_ = operation<&UringConnection::on_cancelled>(*this);
  std::string_view arrived_;  // in a buffer of the kernel's, until on_received returns
  Fifo<std::string> kept_;    // what came while the last was not answered, read by read
  std::size_t kept_bytes_ = 0;
  bool ended_ = false;  // the peer will send no more

  Operation sending_ = operation<&UringConnection::on_sent>(*this);
  std::uint64_t asked_to_send_ = 0;  // Ring::submits() then
  std::vector<iovec> gathered_;      // of the send in flight
  msghdr message_{};
  Fifo<Part> outbox_;
  std::size_t outbox_held_ = 0;  // bytes that wait, and what it takes to keep frames
  bool flush_due_ = false;

  bool broken_ = false;
  bool leaving_ = false;
  bool left_ = false;
};

}  // namespace netdyno
