# NETDYNO_QUICK_BUILD (preset release) reads headers as seldom as it can. The other presets compile each source by itself,
# and so show which one lacks an #include. Joined, the sources of loadgen take 48 s of CPU instead of 103, those of lib 37
# instead of 62 (GCC 12, November 2026).
option(NETDYNO_QUICK_BUILD "precompiled headers, and sources of a library together" OFF)

# netdyno_share_headers(<targets>): what most sources include is compiled once, with netdyno_cli, which all programs
# link. Not for contestants: some have compiler flags of their own, with which it cannot be used, and GCC 12 does not
# always make the same machine code with it. lib/ is the same in all of them.
function(netdyno_share_headers)
  foreach(target IN LISTS ARGN)
    if(NETDYNO_QUICK_BUILD)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # for ccache
      if(target STREQUAL "netdyno_cli")
        target_precompile_headers(${target} PRIVATE <fmt/format.h> <algorithm> <array> <chrono> <cstdint> <functional>
          <map> <memory> <optional> <random> <span> <string> <string_view> <thread> <utility> <vector>)
      else()
        target_precompile_headers(${target} REUSE_FROM netdyno_cli)
      endif()
    endif()
  endforeach()
endfunction()

# netdyno_join_sources(<target>): compiles a dozen of its sources as one, so the names of their anonymous namespaces must
# differ. Not for servers: their work would be inlined across files.
function(netdyno_join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${NETDYNO_QUICK_BUILD} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# GCC looks for garbage from 128 MiB on. From 512 on it compiles large sources in nine tenths of the time, to the same
# machine code; a machine that has not a GiB for each compiler that may run keeps to the default.
if(NETDYNO_QUICK_BUILD)
  cmake_host_system_information(RESULT netdyno_memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT netdyno_processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR netdyno_memory_needed_mib "1024 * (${netdyno_processors} + 2)")
  if(netdyno_memory_mib GREATER netdyno_memory_needed_mib)
    add_compile_options("$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=524288>")
  endif()
endif()
