#if defined(__SANITIZE_THREAD__)

/// Qt's libraries are not instrumented: the thread sanitizer sees what they call (malloc, memmove, pthread
/// functions), but not the futexes that order these calls: it reported the queue of QThreadPool, lists of posted
/// events, wait conditions that were destroyed after use, and what a lookup hands to Qt's pool of resolving threads. So
/// calls from there are not checked. This program's own code is checked, also where Qt calls it.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libQt6Core.so.6\ncalled_from_lib:libQt6Network.so.6\n";
}

#endif
