#pragma once

#include <sys/eventfd.h>

#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/server/lifecycle.hpp"

namespace netdyno {

/// Holds what other threads have for one thread, in the order in which each put it in. Its lock is held to append or
/// to take all out, never while anything is sent or served. It has no bound of its own: what is put in is bounded by
/// what may be asked (main.cpp).
template <typename Item>
class alignas(64) Mailbox {  // a cache line of its own: other threads write here
 public:
  Mailbox() : wake_(eventfd(0, EFD_CLOEXEC)) {
    if (!wake_) die("eventfd: no descriptor left; ask for fewer --threads, or raise ulimit -n");
  }

  /// For epoll, edge-triggered (EPOLLET): an edge follows each time that something comes into an empty mailbox. It is
  /// never read; the count of an eventfd(2) overflows only after 2^64 writes.
  int wake_fd() const { return wake_.get(); }

  /// Any thread. Takes all `items`, whose memory is kept; nothing happens where there are none.
  void put(std::vector<Item>& items) {
    if (items.empty()) return;
    {
      const std::lock_guard lock{mutex_};
      const bool awake = !items_.empty();
      items_.insert(items_.end(), std::move_iterator{items.begin()}, std::move_iterator{items.end()});
      items.clear();
      if (awake) return;
    }
    eventfd_write(wake_.get(), 1);
  }

  /// The owner. What `items` holds is lost, its memory is used again.
  void take(std::vector<Item>& items) {
    items.clear();
    const std::lock_guard lock{mutex_};
    items.swap(items_);
  }

 private:
  const UniqueFd wake_;
  std::mutex mutex_;
  std::vector<Item> items_;
};

}  // namespace netdyno
