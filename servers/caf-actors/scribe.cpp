#include "scribe.hpp"

#include <caf/intrusive_ptr.hpp>
#include <caf/io/system_messages.hpp>

#include "lib/net/send.hpp"

namespace netdyno {

using caf::io::network::operation;

/// False ends the reading of this turn: CAF removes the socket from its loop after the turn only.
bool Scribe::consume(caf::execution_unit* unit, const void* bytes, std::size_t size) {
  return scribe_impl::consume(unit, bytes, size) && reads_;
}

/// activate() does nothing where a removal waits for the end of the turn: the second call takes that back.
void Scribe::add_to_loop() {
  reads_ = true;
  stream_.activate(this);
  stream_.backend().add(operation::read, stream_.fd(), &stream_);
}

void Scribe::remove_from_loop() {
  reads_ = false;
  scribe_impl::remove_from_loop();
}

/// CAF would first send what waits, for as long as the peer takes.
void Scribe::graceful_shutdown() {
  over_ = true;
  detach(&stream_.backend(), false);
}

/// The broker closes the socket, or a read has brought an end or an error, or a write an error.
void Scribe::detach_from(caf::io::abstract_broker* broker) {
  over_ = over_ || is_reset(stream_.fd());
  if (!over_) return set_parent(broker);
  forget();
  scribe_impl::detach_from(broker);
}

/// Closes the socket after this turn. The stream refers to this scribe while it reads or writes, and CAF would not end
/// that where reading or writing began in this very turn.
void Scribe::forget() {
  auto& loop = stream_.backend();
  loop.del(operation::write, stream_.fd(), &stream_);
  loop.post([self = caf::intrusive_ptr<Scribe>{this}] {
    self->stream_.removed_from_loop(operation::read);
    self->stream_.removed_from_loop(operation::write);
  });
}

caf::message Scribe::detach_message() {
  return over_ ? scribe_impl::detach_message() : caf::make_message(caf::io::connection_passivated_msg{hdl()});
}

}  // namespace netdyno
