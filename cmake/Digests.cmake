# What a build takes from a registry is what packages/digests.txt names (docs/adr/digests.md).

set(netdyno_digests ${CMAKE_SOURCE_DIR}/packages/digests.txt)
if(EXISTS ${netdyno_digests})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${netdyno_digests})
endif()

# Adds to the caller's text `whys` why a file is not trusted: its digest is not the one that stands there.
function(netdyno_check_digest name digest whys)
  file(STRINGS ${netdyno_digests} lines)
  set(text "${${whys}}")
  string(FIND ". ${text}" ". ${name} is" at)
  if("${digest}  ${name}" IN_LIST lines OR at GREATER_EQUAL 0)
    return()
  endif()
  if(text)
    string(APPEND text ". ")
  endif()
  string(APPEND text "${name} is not the one of packages/digests.txt (its SHA-256 is ${digest}): if you changed its "
    "version, put its line there; else do not trust it, and remove it")
  set(${whys} "${text}" PARENT_SCOPE)
endfunction()
