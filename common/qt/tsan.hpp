#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace netdyno::qt {

/// Qt's thread pool and Qt's threads order what one thread hands to another by mutexes that are futexes inside of Qt's
/// own library, where the thread sanitizer does not look (no distribution instruments it). These two calls, before
/// and after, tell it. In other builds they are nothing.
inline void handing_over([[maybe_unused]] void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(object);
#endif
}
inline void handed_over([[maybe_unused]] void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(object);
#endif
}

}  // namespace netdyno::qt
