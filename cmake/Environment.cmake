# The environment of every compiler, whoever calls CMake or Ninja and from whatever shell: these variables as they are
# there, LANG as it is said here, and no others. Nothing of CXXFLAGS, LDFLAGS, CPATH, LD_PRELOAD, RUSTFLAGS,
# CARGO_PROFILE_*, GOFLAGS, GOAMD64, GOEXPERIMENT, JDK_JAVAC_OPTIONS or JAVA_TOOL_OPTIONS reaches one, with which a user
# makes one contestant faster or slower without knowing (docs/adr/level-ground.md). Flags that are asked for on CMake's
# command line, such as -DCMAKE_CXX_FLAGS, count, and a run records them. To be included before project(), which reads
# the environment.
set(netdyno_build_passes
  PATH HOME TMPDIR XDG_CACHE_HOME XDG_RUNTIME_DIR
  # Which tools and libraries are taken. A run records what they are.
  CC CXX CMAKE_PREFIX_PATH PKG_CONFIG_PATH JAVA_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN
  # How a compiler is called, and by how many at once.
  CMAKE_CXX_COMPILER_LAUNCHER CMAKE_BUILD_PARALLEL_LEVEL
  CCACHE_BASEDIR CCACHE_CONFIGPATH CCACHE_DIR CCACHE_DISABLE CCACHE_LOGFILE CCACHE_MAXSIZE CCACHE_NOHASHDIR
  CCACHE_REMOTE_STORAGE CCACHE_SLOPPINESS
  # How crates and jars are fetched.
  CARGO_HOME CARGO_HTTP_CAINFO CARGO_HTTP_PROXY CARGO_NET_OFFLINE MAVEN_OPTS MAVEN_ARGS
  SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE
  http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY)
set(netdyno_build_fixes LANG=C.UTF-8)

# Of CMake itself. A value of several lines may look like further names, which it does no harm to clear.
execute_process(COMMAND ${CMAKE_COMMAND} -E environment OUTPUT_VARIABLE netdyno_environment)
string(REGEX MATCHALL "\n[A-Za-z_][A-Za-z_0-9]*=" netdyno_names "\n${netdyno_environment}")
foreach(name IN LISTS netdyno_names)
  string(REGEX REPLACE "[\n=]" "" name "${name}")
  if(NOT name IN_LIST netdyno_build_passes)
    unset(ENV{${name}})
  endif()
endforeach()

# Of what Ninja starts.
set(netdyno_passed "")
foreach(name IN LISTS netdyno_build_passes)
  string(APPEND netdyno_passed " \\\n    \${${name}+\"${name}=\$${name}\"}")
endforeach()
list(JOIN netdyno_build_fixes " " netdyno_fixed)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/environment.sh @ONLY NEWLINE_STYLE UNIX CONTENT
"#!/bin/sh
# environment.sh COMMAND ...: runs it in the environment of the build, which cmake/Environment.cmake states.
exec env -i @netdyno_fixed@@netdyno_passed@ \\
    \"$@\"
")
foreach(what COMPILE LINK CUSTOM)
  set_property(GLOBAL PROPERTY RULE_LAUNCH_${what} "sh \"${CMAKE_BINARY_DIR}/environment.sh\"")
endforeach()

list(JOIN netdyno_build_passes " " netdyno_passed)
set(NETDYNO_BUILD_ENVIRONMENT "${netdyno_fixed} ${netdyno_passed}" CACHE INTERNAL "what compilers have of the environment")
