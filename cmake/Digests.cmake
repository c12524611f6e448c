# What a build takes from a registry is what packages/digests.txt names (docs/adr/digests.md).

set(netdyno_digests ${CMAKE_SOURCE_DIR}/packages/digests.txt)
if(EXISTS ${netdyno_digests})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${netdyno_digests})
endif()

# Sets `why` where a file's digest is not the one that stands there.
function(netdyno_check_digest name digest why)
  file(STRINGS ${netdyno_digests} lines)
  if(NOT "${digest}  ${name}" IN_LIST lines)
    string(CONCAT how "${name} is not the one of packages/digests.txt (its SHA-256 is ${digest}): if you changed its "
      "version, put its line there; else do not trust it, and remove it")
    string(JOIN ". " all ${${why}} "${how}") # with those that were wrong before
    set(${why} "${all}" PARENT_SCOPE)
  endif()
endfunction()
