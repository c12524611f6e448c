#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lib/cli/die.hpp"
#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// A protocol between a transport of streams and its thread: a connection is established when the layer says so. What
/// it does not change, it hands on. Owning thread only, except `wake`.
class Layer : public Transport, protected TransportEvents {
 public:
  explicit Layer(std::unique_ptr<Transport> below) : below_(std::move(below)) {}

  void connect(std::uint32_t connection, TransportEvents& events) override {
    events_ = &events;
    below_->connect(connection, *this);
  }
  bool wait(Nanos until, TransportEvents& events) override {
    events_ = &events;
    return below_->wait(until, *this);
  }
  void sample_arrivals(Nanos span) override { below_->sample_arrivals(span); }
  void wake() override { below_->wake(); }
  std::string_view why() const override { return why_; }
  bool unacknowledged(std::uint32_t connection) const override { return below_->unacknowledged(connection); }
  const Handshakes* handshakes() const override { return below_->handshakes(); }

 protected:
  /// Not of streams.
  void on_messages(std::uint32_t, std::span<const std::string_view>, std::span<const KernelStamp>) override {
    die("a layer over a transport that carries messages");
  }

  /// Drops what is known of a connection that is over.
  virtual void forget(std::uint32_t connection) = 0;

  void let_go(std::uint32_t connection) {
    forget(connection);
    below_->close(connection);
  }

  void end(std::uint32_t connection, CloseReason reason, const std::string& why) {
    let_go(connection);
    why_ = why;
    events_->on_closed(connection, reason);
  }

  std::unique_ptr<Transport> below_;
  TransportEvents* events_ = nullptr;  // the thread, since it first called
  std::string why_;                    // of the event being reported
};

}  // namespace netdyno::load
