#include "common/qt/tsan.hpp"

#if defined(__SANITIZE_THREAD__)

/// Qt's library is not instrumented, but the thread sanitizer sees what it calls (malloc, memmove, pthread functions),
/// and not the futexes that order these calls: it reported the queue of QThreadPool, lists of posted events, and wait
/// conditions that were destroyed after use. So what is called from there is not looked at. What this program's own
/// code does is looked at, also where Qt calls it.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libQt6Core.so.6\n"; }

#endif
