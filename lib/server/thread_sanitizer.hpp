#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace netdyno {

/// A library that no distribution instruments (Qt, libzmq) orders what one thread hands to another by means that the
/// thread sanitizer does not see. These two calls, before and after, tell it. In other builds they are nothing.
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

}  // namespace netdyno
