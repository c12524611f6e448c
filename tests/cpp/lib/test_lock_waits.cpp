#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "lib/server/lock_waits.hpp"

namespace netdyno {
namespace {

using std::chrono_literals::operator""ms;

/// A lock that another thread holds, for two milliseconds from when it is requested.
struct Held {
  bool try_lock() { return false; }
  void lock() { std::this_thread::sleep_for(2ms); }
  void unlock() { ++released; }
  int released = 0;
};

TEST(LockWaits, AFreeLockIsHeldAndCostsNoWait) {
  LockWaits waits;
  std::mutex mutex;
  {
    const auto lock = waits.lock(mutex);
    EXPECT_TRUE(lock.owns_lock());
  }
  EXPECT_EQ(waits.total_ns(), 0u);
}

TEST(LockWaits, EveryWaitIsAddedAndEveryLockGivenBack) {
  LockWaits waits;
  Held held;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(waits.lock(held).owns_lock());
  EXPECT_GE(waits.total_ns(), 6'000'000u);
  EXPECT_EQ(held.released, 3);
  EXPECT_EQ(waits.json(), std::to_string(waits.total_ns()));
}

}  // namespace
}  // namespace netdyno
