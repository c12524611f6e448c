// UNSAFE, on purpose: threads-snapshot without its write lock. Several threads may send to one socket at the same time,
// and then their frames mix.
namespace netdyno {

/// Locks nothing.
struct NoLock {
  void lock() {}
  void unlock() {}
};

}  // namespace netdyno

#define NETDYNO_WRITE_LOCK NoLock
#include "servers/threads-snapshot/main.cpp"
