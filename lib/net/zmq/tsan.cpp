#if defined(__SANITIZE_THREAD__)

/// libzmq is not instrumented, but the thread sanitizer sees what it calls (malloc, memcpy, send, recv), and not the
/// lock-free queues that order these calls between its threads and ours. So what is called from there is not looked
/// at. What this program's own code does is looked at, also where libzmq calls it: what crosses is told by
/// lib/server/thread_sanitizer.hpp.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so.5\n"; }

#endif
