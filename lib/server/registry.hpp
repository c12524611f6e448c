#pragma once

#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

namespace netdyno {

/// The connected members, for servers whose connections live on several threads. Any thread may call it.
template <typename Connection>
class Registry {
 public:
  using Pointer = std::shared_ptr<Connection>;
  using Snapshot = std::shared_ptr<const std::vector<Pointer>>;

  void join(Pointer connection) {
    const std::lock_guard lock{mutex_};
    snapshot_.reset();
    members_.insert(std::move(connection));
  }

  /// No effect for one that has left already.
  void leave(const Pointer& connection) {
    const std::lock_guard lock{mutex_};
    snapshot_.reset();
    members_.erase(connection);
  }

  /// All members at this moment. Copied only when one has joined or left since the last call.
  Snapshot snapshot() {
    const std::lock_guard lock{mutex_};
    if (!snapshot_) snapshot_ = std::make_shared<const std::vector<Pointer>>(members_.begin(), members_.end());
    return snapshot_;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<Pointer> members_;
  Snapshot snapshot_;  // null when out of date
};

}  // namespace netdyno
