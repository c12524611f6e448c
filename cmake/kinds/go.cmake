# Go: a folder is a module whose package main is the program. It asks for nothing from outside the tree. It is compiled
# for the processor that Go takes by default, whatever the user's `go env -w` says (GOENV). The thread sanitizer's preset
# builds it with Go's own race detector, where the Go that is installed has one. A server that speaks TLS becomes another
# program for that, with "-tls" behind its name (servers/_shared/go/without_tls.go).

set(netdyno_go_least 1.19) # what Debian 12 has

function(netdyno_add_go target folder program why)
  find_program(NETDYNO_GO go)
  set(version 0)
  if(NETDYNO_GO)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env GOENV=off GOTOOLCHAIN=local ${NETDYNO_GO} env GOVERSION GOROOT
      OUTPUT_VARIABLE said ERROR_QUIET)
    if(said MATCHES "^go([0-9.]+)[^\n]*\n([^\n]+)")
      set(version ${CMAKE_MATCH_1})
      set(root ${CMAKE_MATCH_2})
    endif()
  endif()
  if(version VERSION_LESS netdyno_go_least)
    set(${why} "Go ${netdyno_go_least} or newer not found: install golang-go, then delete build/ and call netdyno again"
      PARENT_SCOPE)
    return()
  endif()

  # Without cgo, the program is the same whether or not there is a C compiler; the race detector needs it.
  set(options CGO_ENABLED=0)
  set(race "")
  if(NETDYNO_SANITIZE STREQUAL "thread")
    file(GLOB_RECURSE detectors ${root}/src/runtime/race/race_linux*.syso)
    if(detectors)
      set(options CGO_ENABLED=1)
      set(race -race)
    endif()
  endif()
  set(go_dir ${CMAKE_BINARY_DIR}/go)
  list(APPEND options GOCACHE=${go_dir}/cache GOPATH=${go_dir}/path GOENV=off GOFLAGS= GOWORK=off GOPROXY=off GOTOOLCHAIN=local)
  get_filename_component(name ${folder} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.go ${folder}/go.mod ${CMAKE_SOURCE_DIR}/servers/_shared/*/*.go
    ${CMAKE_SOURCE_DIR}/servers/_shared/*/go.mod)
  list(FILTER sources EXCLUDE REGEX "_test\\.go$")
  set(build ${CMAKE_COMMAND} -E env ${options} ${NETDYNO_GO} build -p 2 -trimpath -buildvcs=false ${race})
  set(programs ${program})
  set(with_tls "")
  set(manifest "")
  if(EXISTS ${folder}/server.json)
    file(READ ${folder}/server.json manifest)
  endif()
  if(manifest MATCHES "\"tls\"")
    list(APPEND programs ${program}-tls)
    set(with_tls COMMAND ${build} -tags tls -o ${program}-tls)
  endif()
  add_custom_command(OUTPUT ${programs}
    COMMAND ${build} -o ${program}
    ${with_tls}
    DEPENDS ${sources} ${NETDYNO_GO}
    WORKING_DIRECTORY ${folder}
    COMMENT "Building Go program ${name}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${program})
endfunction()
