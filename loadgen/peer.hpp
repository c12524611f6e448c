#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "loadgen/thread_parts.hpp"

namespace netdyno::load {

/// How a thread deals with what its connections bring and with how they end, by the kind of server. A server of this
/// project keeps its connections (own_peer.cpp). A foreign one may end them as it likes: the next connection carries
/// on, and what is given up has its reason in words (foreign_peer.cpp). Owning thread only; `now` is its clock.
class Peer {
 public:
  struct GivenUp {
    std::uint64_t messages = 0;
    bool with_unsent = false;
  };

  /// `events` get what the connections do.
  Peer(const ThreadParts& thread, TransportEvents& events) : thread_(thread), events_(events) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// What has come on a connection is matched; `good`: its stream can be read any further.
  virtual void on_received(std::uint32_t number, bool good, Nanos now) = 0;
  /// A connection has ended; `cause`: in the words of the transport, if it has any.
  virtual void on_closed(std::uint32_t number, CloseReason reason, const std::string& cause, Nanos now) = 0;
  /// A client that had left could not connect again; `noted`: the reason is in the figures.
  virtual void on_reconnect_failed(std::uint32_t number, ConnectFailure failure, bool noted, Nanos now) = 0;
  /// Gives up the messages of a connection that have waited for --timeout.
  virtual GivenUp give_up_late(std::uint32_t number, Nanos now) = 0;
  /// After the load: gives up all that wait, and returns how many.
  virtual std::uint64_t give_up_all(std::uint32_t number, Nanos now) = 0;

 protected:
  /// It sends nothing, and was to stay open (--busy-connections).
  bool is_idle(std::uint32_t number) const {
    return number >= thread_.clients.share.select_speakers(thread_.plan).size();
  }
  /// The count of connections that ended like this.
  std::uint64_t& errors_by(CloseReason reason);

  const ThreadParts thread_;
  TransportEvents& events_;
};

/// The peer of the plan's server.
std::unique_ptr<Peer> make_peer(const ThreadParts& thread, TransportEvents& events);
std::unique_ptr<Peer> make_own_peer(const ThreadParts& thread, TransportEvents& events);
std::unique_ptr<Peer> make_foreign_peer(const ThreadParts& thread, TransportEvents& events);

}  // namespace netdyno::load
