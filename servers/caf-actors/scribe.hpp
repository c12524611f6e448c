#pragma once

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/scribe_impl.hpp>

namespace netdyno {

/// The socket of a broker, as CAF has it but for three things: the end of the peer's stream is not the end of ours
/// (connection_passivated_msg says it, so that replies still leave), reading can be stopped and resumed in one turn of
/// the loop, and a close is a close at once. Thread of the loop only.
class Scribe final : public caf::io::network::scribe_impl {
 public:
  using scribe_impl::scribe_impl;

  bool consume(caf::execution_unit* unit, const void* bytes, std::size_t size) override;
  void add_to_loop() override;
  void remove_from_loop() override;
  void graceful_shutdown() override;

 private:
  void detach_from(caf::io::abstract_broker* broker) override;
  caf::message detach_message() override;
  void forget();

  bool reads_ = true;
  bool over_ = false;
};

}  // namespace netdyno
