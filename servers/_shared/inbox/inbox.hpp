#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "lib/server/lifecycle.hpp"
#include "lib/server/options.hpp"
#include "lib/session/effects.hpp"

namespace netdyno {

/// Small beside an outbox, as what an inbox holds reaches each member's outbox at once: a member that reads must not
/// look slow for that.
inline std::size_t inbox_limit(const ServerOptions& options) {
  return std::min<std::size_t>(options.outbox_limit / 4, 256 << 10);
}

/// Items from other threads for a thread.
struct Mail {
  std::vector<SharedFrame> frames;    // said on other threads, for the members of this one
  std::vector<UniqueFd> connections;  // new, to be served
  int room = 0;                       // so many inboxes that were full have been emptied
  bool end = false;                   // a shutdown signal has come

  void clear() {
    frames.clear();
    connections.clear();
    room = 0;
    end = false;
  }
};

/// The inbox of one thread. Its lock is held to put something in or to take all out, never while anything is sent.
///
/// It is bounded by making the threads that put frames in wait: they read no more from their clients until they are
/// notified that there is room. Nothing is refused, as each thread empties its inbox in every turn of its loop,
/// also while it waits for others itself; so there is no deadlock, and what a turn of each sender brings fits always.
class alignas(64) Inbox {  // a cache line of its own: other threads write here
 public:
  explicit Inbox(std::size_t limit) : limit_(limit), wake_(eventfd(0, EFD_CLOEXEC)) {
    if (!wake_) die("eventfd: no descriptor left; ask for fewer --threads, or raise ulimit -n");
  }

  /// For epoll, edge-triggered (EPOLLET): an edge follows each time that something comes into an empty inbox. It is
  /// never read; the count of an eventfd(2) overflows only after 2^64 writes.
  int wake_fd() const { return wake_.get(); }

  /// Owner only. Takes all out; what `mail` holds is lost, its memory is used again.
  void take(Mail& mail) {
    mail.clear();
    std::vector<Inbox*> waiting;
    {
      const std::lock_guard lock{mutex_};
      std::swap(mail, mail_);
      bytes_ = 0;
      awake_ = false;
      waiting.swap(waiting_);
    }
    for (Inbox* sender : waiting) sender->put([](Mail& theirs) { ++theirs.room; });
  }

  /// Owner only, which takes nothing out any more: what comes is thrown away, and no sender waits for room.
  void close() {
    {
      const std::lock_guard lock{mutex_};
      closed_ = true;
    }
    Mail unread;
    take(unread);
  }

  /// Any thread. True when the inbox is full now: `sender`, the caller's own inbox, gets a Mail::room for it.
  bool add(std::span<const SharedFrame> frames, Inbox& sender) {
    bool full = false;
    put([&](Mail& mail) {
      mail.frames.insert(mail.frames.end(), frames.begin(), frames.end());
      for (const SharedFrame& frame : frames) bytes_ += frame->bytes.size();
      full = bytes_ > limit_ && std::ranges::find(waiting_, &sender) == waiting_.end();
      if (full) waiting_.push_back(&sender);
    });
    return full;
  }

  /// Any thread.
  void add(UniqueFd connection) {
    put([&](Mail& mail) { mail.connections.push_back(std::move(connection)); });
  }

  /// Any thread.
  void tell_to_end() {
    put([](Mail& mail) { mail.end = true; });
  }

 private:
  template <typename Fill>
  void put(Fill&& fill) {
    {
      const std::lock_guard lock{mutex_};
      if (closed_) return;
      fill(mail_);
      if (std::exchange(awake_, true)) return;
    }
    eventfd_write(wake_.get(), 1);
  }

  const std::size_t limit_;
  const UniqueFd wake_;
  std::mutex mutex_;  // for all that follows
  Mail mail_;
  std::size_t bytes_ = 0;  // of the frames in mail_
  std::vector<Inbox*> waiting_;
  bool awake_ = false;
  bool closed_ = false;
};

}  // namespace netdyno
