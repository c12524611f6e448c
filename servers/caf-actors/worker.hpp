#pragma once

#include <caf/actor.hpp>
#include <caf/event_based_actor.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lib/session/session.hpp"
#include "messages.hpp"
#include "shared.hpp"

namespace netdyno {

/// The work of one connection: an actor that CAF's scheduler runs on any of its threads, on one at a time.
class Worker final : public caf::event_based_actor {
 public:
  Worker(caf::actor_config& config, caf::actor connection, caf::actor room, Shared& shared);

 private:
  caf::behavior make_behavior() override;
  void on_exit() override;

  void receive(const BytesArrived& arrived);
  void end();
  void carry_out();
  void hand_on(Next next);

  Shared& shared_;
  caf::actor connection_;
  caf::actor room_;
  std::unique_ptr<Session> session_;
  Effects effects_;
  decltype(effects_.begin()) next_;
  std::vector<std::string> writes_;  // of effects that are carried out, not yet handed on
  std::vector<SharedFrame> frames_;  // the same
};

}  // namespace netdyno
