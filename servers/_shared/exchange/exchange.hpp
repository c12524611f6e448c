#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "servers/_shared/epoll/coroutine.hpp"
#include "servers/_shared/epoll/loop.hpp"
#include "servers/_shared/inbox/inbox.hpp"

namespace netdyno {

/// What one thread of several sends to the others and receives from them, by their inboxes. Its thread only.
class InboxExchange {
 public:
  /// `inboxes` are those of all threads, `own` among them; none comes or goes any more.
  InboxExchange(std::deque<Inbox>& inboxes, Inbox& own, Loop<Coroutine>& loop)
      : inboxes_(inboxes), own_(own), loop_(loop) {}

  /// To the other threads, with the next publish().
  void queue(SharedFrame frame) { queued_.push_back(std::move(frame)); }

  /// After a turn: publishes its frames, once to each of the other threads.
  void publish() {
    if (queued_.empty()) return;
    for (Inbox& inbox : inboxes_)
      if (&inbox != &own_ && inbox.add(queued_, own_)) ++full_inboxes_;
    queued_.clear();
  }

  /// What has come for this thread. It stays until the next call.
  Mail& take() {
    own_.take(mail_);
    full_inboxes_ -= mail_.room;
    if (full_inboxes_ == 0)
      for (const Coroutine reader : std::exchange(waiting_for_room_, {})) loop_.call_soon(reader);
    return mail_;
  }

  /// Back-pressure between threads: whether no inbox that was filled from here is full any more. While one is, nothing
  /// more is to be read from clients.
  bool has_room() const { return full_inboxes_ == 0; }
  /// Waits for a change of that.
  auto room() {
    return Suspend{[this](Coroutine me) { waiting_for_room_.push_back(me); }};
  }

 private:
  std::deque<Inbox>& inboxes_;
  Inbox& own_;
  Loop<Coroutine>& loop_;
  Mail mail_;
  std::vector<SharedFrame> queued_;
  int full_inboxes_ = 0;  // of other threads, which will tell when there is room
  std::vector<Coroutine> waiting_for_room_;
};

}  // namespace netdyno
