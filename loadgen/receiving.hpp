#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/net/arrivals.hpp"
#include "loadgen/match/message_reader.hpp"
#include "loadgen/match/stream_reader.hpp"
#include "loadgen/peer.hpp"
#include "loadgen/sending.hpp"
#include "loadgen/thread_parts.hpp"
#include "loadgen/transport/transport.hpp"
#include "loadgen/waiting.hpp"

namespace netdyno::load {

/// Receives what the connections of a thread bring: stamps it with the time, decodes it, has it matched (Matching) and
/// dealt with by the kind of server (Peer), and lets leave what it calls for (Sending). Owns the decoders. Owning
/// thread only.
class Receiving final : public TransportEvents {
 public:
  Receiving(const ThreadParts& thread, Codec& codec, Waiting& waiting, Sending& sending);

  Peer& peer() { return *peer_; }

  void on_connected(std::uint32_t number) override;
  void on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) override;
  void on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) override;
  void on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                   std::span<const KernelStamp> arrived) override;
  void on_request_failed(std::uint32_t number, const Stamp& stamp, std::string_view why) override;
  void on_writable(std::uint32_t number) override;
  void on_closed(std::uint32_t number, CloseReason reason) override;

  /// A connect has failed, for a reason in words if there are any.
  void fail_connect(std::uint32_t number, ConnectFailure failure, int error, const std::string& why);

 private:
  Nanos lag_since(KernelStamp arrived);
  void set_times(std::uint32_t number, KernelStamp arrived);

  const ThreadParts thread_;
  Waiting& waiting_;
  Sending& sending_;
  LoopState& loop_;
  Recorder& recorder_;
  Matching& matching_;
  WallClock wall_clock_;
  const bool by_kernel_;  // times end with the kernel's stamps, where there are any
  StreamReader streams_;
  std::optional<MessageReader> messages_;  // instead, where whole messages come
  std::unique_ptr<Peer> peer_;
};

}  // namespace netdyno::load
