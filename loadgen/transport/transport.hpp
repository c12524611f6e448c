#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lib/measure/clock.hpp"
#include "lib/measure/process.hpp"
#include "lib/measure/recorder.hpp"
#include "lib/measure/stamp.hpp"
#include "lib/net/arrivals.hpp"
#include "lib/net/descriptor.hpp"
#include "loadgen/plan/plan.hpp"
#include "loadgen/plan/schedule.hpp"

namespace netdyno::load {

enum class ConnectFailure { refused, timed_out, reset, other };
/// `cut_off`: ended, and perhaps not by the server (TLS without close_notify: RFC 8446, 6.1). `unreadable`: what came
/// is not of the protocol, and the transport has closed the connection.
enum class CloseReason { closed_by_server, cut_off, reset, unreadable };

/// The events that a transport reports to its thread. Connections have the numbers of the share.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  virtual void on_connected(std::uint32_t connection) = 0;
  /// `error` is an errno.
  virtual void on_connect_failed(std::uint32_t connection, ConnectFailure failure, int error) = 0;
  /// Bytes of a stream in any slicing; of a transport that carries messages, exactly one message, however broken, and
  /// never a control message. Valid during the call. `arrived`: of the last byte.
  virtual void on_received(std::uint32_t connection, std::string_view bytes, KernelStamp arrived) = 0;
  /// The same for messages that were there at once, each with its stamp, or none with any. Valid during the call.
  virtual void on_messages(std::uint32_t connection, std::span<const std::string_view> messages,
                           std::span<const KernelStamp> arrived) = 0;
  /// Of a transport with a stream for each request: the request with this stamp has come to its end without a reply.
  virtual void on_request_failed(std::uint32_t /*connection*/, const Stamp&, std::string_view /*why*/) {}
  /// A connection that could not take everything can take more.
  virtual void on_writable(std::uint32_t connection) = 0;
  /// The connection is gone; the transport has let go of it.
  virtual void on_closed(std::uint32_t connection, CloseReason reason) = 0;
};

/// How bytes get to the server and back. Never blocks but in `wait`. Owning thread only, except `wake`. A transport
/// that carries messages (carries_messages) makes connections of them with HELO, WELC and BYE!
/// (transport/greeting.hpp): a connection is established when the server has answered WELC. Its destructor takes leave
/// of the server.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Begins to connect; on_connected or on_connect_failed follows, perhaps from within.
  virtual void connect(std::uint32_t connection, TransportEvents& events) = 0;
  /// Returns how many bytes were taken. When it is not all of them, on_writable or on_closed follows. A transport that
  /// carries messages gets one, and takes all of it or nothing.
  virtual std::size_t send(std::uint32_t connection, std::string_view bytes) = 0;
  /// Only where messages are carried: sends those that stand one after the other in `bytes`, up to each of `ends`.
  /// Returns how many bytes were taken, whole messages all, with the same promise as `send`.
  virtual std::size_t send_messages(std::uint32_t connection, std::string_view bytes,
                                    std::span<const std::size_t> ends);
  /// Lets go of a connection, without an event.
  virtual void close(std::uint32_t connection) = 0;
  /// Only over streams: hands over the socket of a connection that stands, and knows no more of it.
  virtual UniqueFd release(std::uint32_t connection);
  /// Delivers events until there are none at hand; waits for the first until `until` at most (a moment that has passed:
  /// does not wait). False when there was none.
  virtual bool wait(Nanos until, TransportEvents& events) = 0;
  /// Chooses how many reads ask the kernel when their bytes arrived, by how many there were in the `span` since the
  /// last call (ReadSampler). Of a transport that does not read for itself, none do.
  virtual void sample_arrivals(Nanos /*span*/) {}
  /// Any thread: ends a `wait` early.
  virtual void wake() = 0;
  /// The reason, in words, of the on_connect_failed or on_closed being reported. Empty where the event says it all.
  virtual std::string_view why() const { return {}; }
  /// Whether what was sent has not even reached the system of the server, as where a queue for accept is full.
  virtual bool unacknowledged(std::uint32_t /*connection*/) const { return false; }
  /// The handshakes so far, of a transport that has any.
  virtual const Handshakes* handshakes() const { return nullptr; }
  /// Messages that have reached this machine's sockets and found no room in them: those, the generator has lost itself.
  virtual std::uint64_t socket_drops() const { return 0; }
  /// CPU time of the transport's own threads: they are part of the generator.
  virtual std::vector<CpuTime> own_threads() const { return {}; }
};

/// Ends the program when the address cannot be resolved.
std::unique_ptr<Transport> make_transport(const LoadPlan& plan, const ThreadShare& share);

}  // namespace netdyno::load
