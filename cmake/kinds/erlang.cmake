# Erlang, by erlc: a folder's *.erl become *.beam, and the program is a script that starts the runtime on them and calls
# main:start(). It does so as erl(1) would, but without erl, which adds to PATH and more that no other server has. The
# runtime has its defaults, but for these: as many schedulers as --threads says; one more for long work (+SDcpu), which
# no server has, and not as many again; and a binary of 60 KiB or more lies in pages of its own (+MBsbct; 512 KiB by
# default), which go back to the system when the message is gone (protocol/WIRE.md).

set(netdyno_erlang_least 25) # what Debian 12 has

# Looks for Erlang/OTP: its root, its emulator (the newest) and its version; 0 where there is none.
function(netdyno_find_erlang root emulator version)
  find_program(NETDYNO_ERLC erlc)
  set(found 0)
  if(EXISTS "${NETDYNO_ERLC}")
    file(REAL_PATH ${NETDYNO_ERLC} folder)
    foreach(level RANGE 3)
      get_filename_component(folder ${folder} DIRECTORY)
      file(GLOB emulators ${folder}/erts-*/bin/beam.smp)
      file(GLOB releases ${folder}/releases/*/OTP_VERSION)
      if(emulators AND releases)
        list(SORT emulators COMPARE NATURAL)
        list(SORT releases COMPARE NATURAL)
        list(GET emulators -1 newest)
        list(GET releases -1 release)
        file(STRINGS ${release} found LIMIT_COUNT 1)
        break()
      endif()
    endforeach()
  endif()
  set(${root} "${folder}" PARENT_SCOPE)
  set(${emulator} "${newest}" PARENT_SCOPE)
  set(${version} ${found} PARENT_SCOPE)
endfunction()

function(netdyno_add_erlang target folder program why)
  netdyno_find_erlang(root emulator version)
  if(version VERSION_LESS netdyno_erlang_least)
    string(CONCAT how "Erlang/OTP ${netdyno_erlang_least} or newer not found: install erlang-base, then delete build/ "
      "and call netdyno again")
    set(${why} "${how}" PARENT_SCOPE)
    return()
  endif()
  set(NETDYNO_ERLANG_VERSION "Erlang/OTP ${version}" CACHE INTERNAL "what runs contestants in Erlang")
  get_filename_component(name ${folder} NAME)
  get_filename_component(bindir ${emulator} DIRECTORY)
  set(erlang_dir ${CMAKE_BINARY_DIR}/erlang)
  set(beams ${erlang_dir}/${name})
  # No crash dump, which may be as large as the memory.
  string(JOIN " " command
    "env -u PWD BINDIR=\"${bindir}\" ERL_CRASH_DUMP_BYTES=0 \"$<TARGET_FILE:netdyno-signals>\" \"${emulator}\""
    "-S \"\${threads:-1}\" -SDcpu 1:1 -MBsbct 60 -- -root \"${root}\" -bindir \"${bindir}\" -progname erl --"
    "-boot \"${root}/bin/no_dot_erlang\" -noshell -noinput -pa \"${beams}\" -s main -extra \"$1\"")
  file(GENERATE OUTPUT ${erlang_dir}/${name}.in CONTENT
    "#!/bin/sh\nthreads=\${1#*'\"threads\":'}\nthreads=\${threads%%[!0-9]*}\nexec ${command}\n")
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.erl)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.hrl)
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${beams}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${beams}
    COMMAND ${NETDYNO_ERLC} +deterministic -o ${beams} ${sources}
    COMMAND ${CMAKE_COMMAND} -E copy ${erlang_dir}/${name}.in ${program}
    COMMAND chmod +x ${program}
    DEPENDS ${sources} ${headers} ${erlang_dir}/${name}.in ${NETDYNO_ERLC} netdyno-signals
    WORKING_DIRECTORY ${folder}
    COMMENT "Building Erlang program ${name}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${program})
endfunction()
