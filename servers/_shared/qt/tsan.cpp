#if defined(__SANITIZE_THREAD__)

/// Qt's libraries are not instrumented, but the thread sanitizer sees what they call (malloc, memmove, pthread
/// functions), and not the futexes that order these calls: it reported the queue of QThreadPool, lists of posted
/// events, wait conditions that were destroyed after use, and what a lookup hands to Qt's pool of resolving threads. So
/// what is called from there is not looked at. What this program's own code does is looked at, also where Qt calls it.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libQt6Core.so.6\ncalled_from_lib:libQt6Network.so.6\n";
}

#endif
