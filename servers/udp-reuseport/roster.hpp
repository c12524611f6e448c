#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/net/datagram/address.hpp"

namespace netdyno {

/// The addresses of the clients that one thread knows, for the other threads to send to. What is published is never
/// changed, only replaced, so it can be read, and sent to, without a lock.
class alignas(64) Roster {  // a cache line of its own: other threads read the version all the time
 public:
  using Addresses = std::vector<Address>;

  /// Owner only.
  void publish(Addresses addresses) {
    auto fresh = std::make_shared<const Addresses>(std::move(addresses));
    const std::lock_guard lock{mutex_};
    latest_.swap(fresh);
    version_.fetch_add(1, std::memory_order_release);
  }

  /// The view of one other thread. That thread only.
  class View {
   public:
    explicit View(Roster& roster) : roster_(&roster) {}

    /// As it is now. The lock is held to copy a pointer, and only when there is something new.
    const Addresses& addresses() {
      if (roster_->version_.load(std::memory_order_acquire) != version_) {
        const std::lock_guard lock{roster_->mutex_};
        addresses_ = roster_->latest_;
        version_ = roster_->version_.load(std::memory_order_relaxed);
      }
      return *addresses_;
    }

   private:
    Roster* roster_;
    std::uint64_t version_ = 0;
    std::shared_ptr<const Addresses> addresses_ = std::make_shared<const Addresses>();
  };

 private:
  std::atomic<std::uint64_t> version_{0};
  std::mutex mutex_;  // for latest_
  std::shared_ptr<const Addresses> latest_;
};

}  // namespace netdyno
