#include "worker.hpp"

#include <cassert>
#include <utility>

namespace netdyno {

Worker::Worker(caf::actor_config& config, caf::actor connection, caf::actor room, Shared& shared)
    : event_based_actor(config),
      shared_(shared),
      connection_(std::move(connection)),
      room_(std::move(room)),
      session_(make_session(shared.options, shared.counters)),
      effects_(shared.options.write_mode),
      next_(effects_.begin()) {}

caf::behavior Worker::make_behavior() {
  set_exception_handler(close_without_memory(shared_.counters));
  return {
      [this](const BytesArrived& arrived) { receive(arrived); },
      [this](const StreamEnded&) { end(); },
      [this](const ServiceOver&) { carry_out(); },
  };
}

/// The connection and its worker refer to each other. A timer may keep this actor, but not what it holds.
void Worker::on_exit() {
  connection_ = nullptr;
  room_ = nullptr;
  session_.reset();
  effects_ = Effects{shared_.options.write_mode};
}

void Worker::receive(const BytesArrived& arrived) {
  effects_.clear();
  session_->receive(arrived.bytes, effects_);
  next_ = effects_.begin();
  carry_out();
}

void Worker::end() {
  effects_.clear();
  session_->end(effects_);
  next_ = effects_.begin();
  carry_out();
}

/// Carries out the effects from next_ on. A wait ends this call; its message comes back here.
void Worker::carry_out() {
  while (next_ != effects_.end()) {
    const Effect& effect = *next_++;
    switch (effect.kind) {
      case Effect::Kind::write:
        writes_.emplace_back(effects_.bytes(effect));
        break;
      case Effect::Kind::broadcast:
        frames_.push_back(effect.frame);
        break;
      case Effect::Kind::wait:
        hand_on(Next::wait);
        return delayed_send(caf::actor{this}, effect.duration, ServiceOver{});
      case Effect::Kind::burn:
        hand_on(Next::wait);
        burn_cpu(effect.duration);
        break;
      case Effect::Kind::close:
        return hand_on(Next::close);
    }
  }
  hand_on(Next::read);
}

/// Frames go by way of the room, and the connection hears from there what is next: behind its own frames.
void Worker::hand_on(Next next) {
  assert(writes_.empty() || frames_.empty());  // a session replies or broadcasts
  if (!frames_.empty()) {
    auto frames = std::make_shared<const std::vector<SharedFrame>>(std::exchange(frames_, {}));
    send(room_, Broadcast{std::move(frames), connection_, next});
  } else if (!writes_.empty() || next != Next::wait) {
    send(connection_, Replied{std::exchange(writes_, {}), next});
  }
}

}  // namespace netdyno
