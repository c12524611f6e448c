# NETDYNO_ONLY_LOAD (preset load): the generator for other machines. Of its libraries the C library alone is looked for
# there: the others are linked statically, wherever they can be had so, and what nobody calls is left out. Protobuf may
# be missing.
if(NETDYNO_ONLY_LOAD)
  set(netdyno_fmt fmt::fmt-header-only)
  set(netdyno_protobuf QUIET)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections)
else()
  set(netdyno_fmt fmt::fmt)
  set(netdyno_protobuf REQUIRED)
endif()
