#if defined(__SANITIZE_THREAD__)

/// libzmq is not instrumented: the thread sanitizer sees what it calls (malloc, memcpy, send, recv), but not the
/// lock-free queues that order these calls between its threads and ours. So calls from libzmq are not checked. This
/// program's own code is checked, also where libzmq calls it: lib/server/thread_sanitizer.hpp declares what crosses
/// threads.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so.5\n"; }

#endif
