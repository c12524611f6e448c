# NETDYNO_SANITIZE=address|thread (presets asan and tsan) instruments every program of the tree.
set(NETDYNO_SANITIZE "" CACHE STRING "address, thread or empty")
if(NETDYNO_SANITIZE STREQUAL "address")
  # Without vptr: that check opens a pipe to see whether memory is readable, and so calls every object of a process that
  # has run out of descriptors invalid (IsAccessibleMemoryRange in compiler-rt's sanitizer_posix_libcdep).
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(NETDYNO_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NETDYNO_SANITIZE)
  message(FATAL_ERROR "NETDYNO_SANITIZE is '${NETDYNO_SANITIZE}': want address, thread or empty")
endif()
