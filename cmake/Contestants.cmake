# A contestant is a folder with a manifest; nothing else names it. Each folder becomes one program of the folder's name,
# but for those of kind "command", which are run as they are, and "framework", which are built when a run needs them.
# Kind "cmake" is built from its main.cpp (and what else *.cpp it holds), linked with the needs its manifest states. Any
# other kind is a language with a builder of its own, which cmake/kinds/<kind>.cmake calls: netdyno_add_<kind>(<target>
# <folder> <program> <why>) makes a target that leaves the program there, or sets <why> to what is missing and how to
# get it; with all there, that takes well below a second. What is missing makes a stated skip: the reason goes to
# <build>/skipped/<root>/<name>.txt, where `netdyno list` reads it, and its target makes nothing. A server and a client
# may have the same name; the target of a client is client-<name>.

include(${CMAKE_CURRENT_LIST_DIR}/Digests.cmake)
file(GLOB netdyno_kinds CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kinds/*.cmake)
foreach(netdyno_kind IN LISTS netdyno_kinds)
  include(${netdyno_kind})
endforeach()

# A need is a function: it sets <result> to the libraries to link, or <why> to what is missing and how to get it.
function(netdyno_need_boost result why)
  find_package(Boost 1.81 QUIET)
  if(Boost_FOUND)
    add_library(netdyno_boost INTERFACE IMPORTED GLOBAL)
    target_link_libraries(netdyno_boost INTERFACE Boost::headers)
    # Header-only, no deprecated names; the error category is header-only as well since Boost 1.69.
    target_compile_definitions(netdyno_boost INTERFACE BOOST_ASIO_NO_DEPRECATED)
    if(NETDYNO_SANITIZE STREQUAL "thread")
      # The thread sanitizer does not see std::atomic_thread_fence (-Wtsan); Asio's mutexes order the same accesses.
      target_compile_definitions(netdyno_boost INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
    endif()
    set(${result} netdyno_boost PARENT_SCOPE)
  else()
    set(${why} "Boost 1.81 or newer not found: install libboost-dev (Debian 12: libboost1.81-dev)" PARENT_SCOPE)
  endif()
endfunction()

# Fibers with stacks of their own. Beside netdyno_need_boost, whose contestants take headers alone.
function(netdyno_need_boost_context result why)
  if(NETDYNO_SANITIZE)
    string(CONCAT how
      "Boost.Context as packaged does not notify a sanitizer of each switch of stacks, without which it reports errors "
      "where there are none: use the preset release or dev")
    set(${why} "${how}" PARENT_SCOPE)
    return()
  endif()
  find_package(Boost 1.81 QUIET COMPONENTS context)
  if(Boost_FOUND)
    set(${result} Boost::context PARENT_SCOPE)
  else()
    string(CONCAT how
      "Boost.Context 1.81 or newer not found: install libboost-context-dev (Debian 12: libboost-context1.81-dev)")
    set(${why} "${how}" PARENT_SCOPE)
  endif()
endfunction()

# Of servers with one thread that blocks (lib/server/blocking_client.hpp).
function(netdyno_need_signal_handlers result why)
  if(NETDYNO_SANITIZE STREQUAL "thread")
    string(CONCAT how
      "the thread sanitizer keeps a signal from its handler until recv(2) returns, and this server, whose processes have "
      "one thread each, ends by that handler: use the preset release, dev or asan")
    set(${why} "${how}" PARENT_SCOPE)
  endif()
endfunction()

function(netdyno_need_qt result why)
  find_package(Qt6 6.4 QUIET COMPONENTS Core Network)
  if(Qt6_FOUND)
    set(${result} Qt6::Core Qt6::Network PARENT_SCOPE)
  else()
    set(${why} "Qt 6.4 or newer (Core and Network) not found: install qt6-base-dev" PARENT_SCOPE)
  endif()
endfunction()

function(netdyno_need_zmq result why)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(netdyno_libzmq QUIET libzmq>=4.3)
  endif()
  find_path(netdyno_cppzmq zmq.hpp)
  if(netdyno_libzmq_FOUND AND netdyno_cppzmq)
    # Not PkgConfig::netdyno_libzmq: of Debian's flags, which are for a static link, it takes `-isystem DIR` for a folder
    # the first time and for an option from then on (CMake 3.25), so that the second configuration built all anew.
    add_library(netdyno_zmq INTERFACE IMPORTED GLOBAL)
    target_link_libraries(netdyno_zmq INTERFACE ${netdyno_libzmq_LINK_LIBRARIES})
    target_include_directories(netdyno_zmq SYSTEM INTERFACE ${netdyno_libzmq_INCLUDEDIR} ${netdyno_cppzmq})
    set(${result} netdyno_zmq PARENT_SCOPE)
  else()
    set(${why} "libzmq 4.3 or newer with zmq.hpp not found: install pkg-config, libzmq3-dev and cppzmq-dev" PARENT_SCOPE)
  endif()
endfunction()

# 2.3 is the first that has what the servers ask for (io_uring_prep_recv_multishot, IORING_SETUP_DEFER_TASKRUN). Whether
# the kernel lets them is not known before they run: python/netdyno/question/contestants/kernel.py asks it.
function(netdyno_need_uring result why)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(netdyno_liburing QUIET liburing>=2.3)
  endif()
  if(netdyno_liburing_FOUND)
    add_library(netdyno_uring INTERFACE IMPORTED GLOBAL) # as above
    target_link_libraries(netdyno_uring INTERFACE ${netdyno_liburing_LINK_LIBRARIES})
    target_include_directories(netdyno_uring SYSTEM INTERFACE ${netdyno_liburing_INCLUDEDIR})
    set(${result} netdyno_uring PARENT_SCOPE)
  else()
    set(${why} "liburing 2.3 or newer not found: install pkg-config and liburing-dev" PARENT_SCOPE)
  endif()
endfunction()

# A C library as pkg-config knows it: target netdyno_<name>, or <why> with the Debian package that has it.
macro(netdyno_need_module name module package result why)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(netdyno_module_${name} QUIET "${module}")
  endif()
  if(netdyno_module_${name}_FOUND)
    add_library(netdyno_${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(netdyno_${name} INTERFACE ${netdyno_module_${name}_LINK_LIBRARIES})
    if(NETDYNO_ONLY_LOAD) # a static library needs what its module calls private: Debian 13's libcrypto needs zlib and zstd
      foreach(private IN LISTS netdyno_module_${name}_STATIC_LIBRARIES)
        string(REGEX REPLACE "^:" "" private "${private}") # -l:FILE, as Ubuntu 26.04's libcrypto needs libjitterentropy.a
        find_library(netdyno_private_${private} ${private} HINTS ${netdyno_module_${name}_STATIC_LIBRARY_DIRS}
          ${netdyno_module_${name}_LIBDIR})
        if(netdyno_private_${private})
          target_link_libraries(netdyno_${name} INTERFACE ${netdyno_private_${private}})
        endif()
      endforeach()
    endif()
    target_include_directories(netdyno_${name} SYSTEM INTERFACE ${netdyno_module_${name}_INCLUDEDIR})
    set(${result} netdyno_${name} PARENT_SCOPE)
  else()
    set(${why} "${module} not found: install pkg-config and ${package}" PARENT_SCOPE)
  endif()
endmacro()

function(netdyno_need_uv result why)
  netdyno_need_module(uv "libuv>=1.44" libuv1-dev ${result} ${why})
endfunction()

function(netdyno_need_event result why)
  netdyno_need_module(event "libevent_core>=2.1" libevent-dev ${result} ${why})
endfunction()

# For TLS: the load generator, and what servers load for it (lib/tls/).
function(netdyno_need_tls result why)
  netdyno_need_module(tls "openssl>=3.0" libssl-dev ${result} ${why})
endfunction()

# For servers whose backend is PostgreSQL (lib/postgresql/).
function(netdyno_need_postgresql result why)
  netdyno_need_module(postgresql "libpq>=13" libpq-dev ${result} ${why})
endfunction()

# HTTP/2 of the load generator, for the workload grpc.
function(netdyno_need_http2 result why)
  netdyno_need_module(http2 "libnghttp2>=1.43" libnghttp2-dev ${result} ${why})
endfunction()

# Folly is in no Debian. Its own configuration names the shared gflags without looking for it.
function(netdyno_need_folly result why)
  find_package(gflags QUIET CONFIG COMPONENTS shared)
  find_package(folly QUIET CONFIG)
  if(NOT folly_FOUND OR NOT gflags_FOUND)
    string(CONCAT how
      "Folly not found: it is not in Debian. Build its tag v2025.02.17.00 (github.com/facebook/folly; known good with "
      "GCC 12) as its README says, and name its prefix in CMAKE_PREFIX_PATH; then delete build/ and call netdyno again")
    set(${why} "${how}" PARENT_SCOPE)
    return()
  endif()
  if(NETDYNO_SANITIZE STREQUAL "thread")
    # What crosses from one EventBase to another is ordered by a queue inside the library.
    get_target_property(library Folly::folly LOCATION)
    file(STRINGS ${library} instrumented LIMIT_COUNT 1 REGEX "__tsan_func_entry")
    if(NOT instrumented)
      string(CONCAT how
        "${library} is built without the thread sanitizer, which would report races where there are none. Build Folly "
        "with -DCMAKE_CXX_FLAGS=-fsanitize=thread for another prefix, and set CMAKE_PREFIX_PATH in the environment")
      set(${why} "${how}" PARENT_SCOPE)
      return()
    endif()
  endif()
  set(${result} Folly::folly PARENT_SCOPE)
endfunction()

# No library: what the instruments share, in servers/_shared/calibration/.
function(netdyno_need_calibration result why)
  set(${result} "" PARENT_SCOPE)
endfunction()

# netdyno_add_folder(<name> <folder> <result> <libraries...>): the sources of a folder as objects, which whoever links
# them gets all of: nothing would ask an archive for what the thread sanitizer is told. No sources: no library.
function(netdyno_add_folder name folder result)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  set(${result} "" PARENT_SCOPE)
  if(sources)
    add_library(${name} OBJECT ${sources})
    target_link_libraries(${name} PUBLIC ${ARGN} PRIVATE netdyno_warnings)
    set(${result} ${name} PARENT_SCOPE)
  endif()
endfunction()

# Each need is looked for once, whatever number of contestants states it. Beside the library itself there may be
# lib/net/<need>/, for all programs that have the need, and servers/_shared/<need>/, for servers only.
function(netdyno_find_need need)
  get_property(known GLOBAL PROPERTY netdyno_sought_${need})
  if(known)
    return()
  endif()
  set_property(GLOBAL PROPERTY netdyno_sought_${need} TRUE)
  set(libraries "")
  set(missing "")
  if(COMMAND netdyno_need_${need})
    cmake_language(CALL netdyno_need_${need} libraries missing)
  else()
    set(missing "unknown need '${need}': cmake/Contestants.cmake has no netdyno_need_${need}")
  endif()
  if(NOT missing)
    netdyno_add_folder(netdyno_net_${need} lib/net/${need} net netdyno_net ${libraries})
    set_property(GLOBAL PROPERTY netdyno_need_${need} ${net} ${libraries})
    netdyno_add_folder(netdyno_servers_${need} servers/_shared/${need} shared
      netdyno_servers_shared netdyno_measure ${net} ${libraries})
    set_property(GLOBAL PROPERTY netdyno_servers_${need} ${shared})
  endif()
  set_property(GLOBAL PROPERTY netdyno_missing_${need} "${missing}")
endfunction()

# netdyno_add_contestants(servers|clients <library that each of them links>)
function(netdyno_add_contestants root)
  string(REGEX REPLACE "s$" "" role ${root})
  file(GLOB manifests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${root}/*/${role}.json)
  file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/skipped/${root})
  foreach(manifest IN LISTS manifests)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
    get_filename_component(folder ${manifest} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    file(READ ${manifest} json)
    string(JSON kind GET "${json}" kind)
    if(kind STREQUAL "command")
      continue()
    endif()

    set(libraries "")
    set(suppressions "")
    set(missing "")
    string(JSON count ERROR_VARIABLE no_needs LENGTH "${json}" needs)
    if(no_needs)
      set(count 0)
    endif()
    if(count GREATER 0)
      math(EXPR last "${count} - 1")
      foreach(i RANGE ${last})
        string(JSON need GET "${json}" needs ${i})
        netdyno_find_need(${need})
        get_property(need_libraries GLOBAL PROPERTY netdyno_need_${need})
        get_property(need_missing GLOBAL PROPERTY netdyno_missing_${need})
        list(APPEND libraries ${need_libraries})
        if(role STREQUAL "server")
          get_property(shared GLOBAL PROPERTY netdyno_servers_${need})
          list(APPEND libraries ${shared})
        elseif(EXISTS ${CMAKE_SOURCE_DIR}/servers/_shared/${need}/tsan.cpp) # about the library, whoever uses it
          list(APPEND suppressions ${CMAKE_SOURCE_DIR}/servers/_shared/${need}/tsan.cpp)
        endif()
        if(need_missing) # no list: a reason is a sentence, which may have a semicolon
          string(APPEND missing "${need_missing}\n")
        endif()
      endforeach()
    endif()
    set(target ${name})
    if(NOT role STREQUAL "server")
      set(target ${role}-${name})
    endif()
    if(kind STREQUAL "framework" AND NOT missing) # what it needs here is the generator's
      continue()
    endif()
    if(NOT kind STREQUAL "cmake" AND NOT missing)
      cmake_language(CALL netdyno_add_${kind} ${target} ${folder} ${CMAKE_BINARY_DIR}/${root}/${name} missing)
    endif()
    if(missing)
      file(WRITE ${CMAKE_BINARY_DIR}/skipped/${root}/${name}.txt "${missing}")
      string(STRIP "${missing}" missing)
      message(STATUS "${role} ${name} skipped: ${missing}")
      add_custom_target(${target})
      continue()
    endif()

    if(kind STREQUAL "cmake")
      if(EXISTS ${folder}/library/CMakeLists.txt) # which also builds by itself, for programs of others
        add_subdirectory(${folder}/library ${CMAKE_BINARY_DIR}/libraries/${root}/${name})
        target_link_libraries(netdyno-${role}-${name} PUBLIC ${libraries} PRIVATE netdyno_warnings)
        list(APPEND libraries netdyno-${role}-${name})
      endif()
      file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
      add_executable(${target} ${sources} ${suppressions})
      target_link_libraries(${target} PRIVATE ${ARGN} netdyno_warnings ${libraries})
      set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${root})
    endif()
    add_dependencies(netdyno_programs ${target})
    string(JSON unsafe ERROR_VARIABLE safe GET "${json}" unsafe)
    if(NOT safe)
      message(STATUS "${role} ${name} is UNSAFE, on purpose: ${unsafe}")
    endif()
  endforeach()
endfunction()
