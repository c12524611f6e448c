# NETDYNO_QUICK_BUILD (preset release) reads headers as seldom as it can. The other presets compile each source by itself,
# and so show which one lacks an #include (docs/measurements/build-time.md).
option(NETDYNO_QUICK_BUILD "precompiled headers, and sources of the generator together" OFF)

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
