#pragma once

#include <sys/uio.h>

#include <caf/actor.hpp>
#include <caf/io/broker.hpp>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "lib/server/outbox.hpp"
#include "messages.hpp"
#include "shared.hpp"

namespace netdyno {

/// One client: a broker, which reads and writes on the one thread of CAF's loop; its worker does the work meanwhile.
class Connection final : public caf::io::broker {
 public:
  /// Owns `fd` from here on.
  Connection(caf::actor_config& config, int fd, caf::actor room, Shared& shared);

 private:
  caf::behavior make_behavior() override;
  void on_exit() override;

  void open();
  void read(std::string_view bytes);
  void read_end();
  void serve(std::string bytes);
  void take_reply(Replied& reply);
  void deliver(const Frames& frames);
  void note_if_behind();
  void go_on();
  void send_next();
  void write(std::span<const iovec> parts);
  void note_written(std::uint64_t written, std::uint64_t remaining);
  void finish();
  void linger();
  void leave();

  int fd_;  // valid as long as socket_ is
  caf::actor room_;
  caf::actor worker_;
  Shared& shared_;
  const ServerOptions& options_;
  caf::io::connection_handle socket_;
  std::deque<std::string> writes_;  // the first of them is being sent
  Outbox<iovec> outbox_;
  std::size_t under_way_ = 0;  // bytes of the write that is not done yet
  std::string held_;           // what came while the worker was busy: one read
  bool busy_ = false;          // the worker is
  bool behind_ = false;        // with the outbox, and the room knows it
  bool ended_ = false;         // by the peer
  bool closing_ = false;
  bool lingers_ = false;
};

}  // namespace netdyno
