# Rust, by Cargo: a folder's Cargo.toml has a program of the folder's name. It is built in cargo's own release profile, as
# a Rust service is shipped (opt-level 3, and no LTO across crates, as the C++ servers have none), whatever the preset:
# stable Rust has no sanitizers. The toolchain is that which the machine has when the build is configured, and cargo's
# configuration that of cargo-home.sh: it is started in /, for it reads those of all folders above it.

set(netdyno_cargo_least 1.85) # what Tokio asks for
set_property(GLOBAL APPEND PROPERTY JOB_POOLS netdyno_cargo=1) # a second cargo would only wait for the first

# Looks for Rust once: the target triple of this machine, or what is missing.
function(netdyno_find_rust triple why)
  get_property(known GLOBAL PROPERTY netdyno_rust_triple)
  get_property(missing GLOBAL PROPERTY netdyno_rust_missing)
  if(NOT known AND NOT missing)
    find_program(NETDYNO_CARGO cargo)
    find_program(NETDYNO_RUSTC rustc)
    set(known "")
    set(version 0)
    if(NETDYNO_CARGO AND NETDYNO_RUSTC)
      # Those that rustup would start: which they are may change from one call to the next.
      execute_process(COMMAND ${NETDYNO_RUSTC} --print sysroot OUTPUT_VARIABLE sysroot ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE WORKING_DIRECTORY /)
      foreach(tool RUSTC CARGO)
        string(TOLOWER ${tool} name)
        if(sysroot AND EXISTS ${sysroot}/bin/${name})
          set(NETDYNO_${tool} ${sysroot}/bin/${name} CACHE FILEPATH "of the toolchain that builds" FORCE)
        endif()
      endforeach()
      execute_process(COMMAND ${NETDYNO_RUSTC} --version --verbose OUTPUT_VARIABLE said ERROR_QUIET WORKING_DIRECTORY /)
      if(said MATCHES "host: ([^\n]+)\nrelease: ([0-9.]+)")
        set(known ${CMAKE_MATCH_1})
        set(version ${CMAKE_MATCH_2})
      endif()
      execute_process(COMMAND sh ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/cargo-home.sh ${CMAKE_BINARY_DIR}/cargo/home
        COMMAND_ERROR_IS_FATAL ANY)
      # No flags beats those of any configuration that is read all the same.
      set(netdyno_cargo ${CMAKE_COMMAND} -E env CARGO_HOME=${CMAKE_BINARY_DIR}/cargo/home RUSTC=${NETDYNO_RUSTC}
        CARGO_ENCODED_RUSTFLAGS= ${NETDYNO_CARGO})
      set_property(GLOBAL PROPERTY netdyno_cargo ${netdyno_cargo})
    endif()
    if(version VERSION_LESS netdyno_cargo_least)
      string(CONCAT missing "Rust ${netdyno_cargo_least} or newer with cargo not found: install cargo-web (Debian 12), "
        "cargo (Debian 13), or Rust by rustup; then delete build/ and call netdyno again")
    endif()
    set_property(GLOBAL PROPERTY netdyno_rust_triple "${known}")
    set_property(GLOBAL PROPERTY netdyno_rust_missing "${missing}")
  endif()
  set(${triple} "${known}" PARENT_SCOPE)
  set(${why} "${missing}" PARENT_SCOPE)
endfunction()

# The network is asked only for what this machine does not have yet, and never while something is built.
function(netdyno_fetch_crates folder triple why)
  get_property(cargo GLOBAL PROPERTY netdyno_cargo)
  set(fetch ${CMAKE_COMMAND} -E env CARGO_NET_RETRY=1 CARGO_HTTP_TIMEOUT=20 ${cargo} fetch --quiet
    --target ${triple} --manifest-path ${folder}/Cargo.toml)
  execute_process(COMMAND ${fetch} --offline RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET WORKING_DIRECTORY /)
  if(failed)
    message(STATUS "fetching the crates of ${folder}")
    execute_process(COMMAND ${fetch} TIMEOUT 120 RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE said
      WORKING_DIRECTORY /)
  endif()
  if(failed)
    string(CONCAT how "its crates cannot be had: let 'cargo fetch' in ${folder} reach a registry once, then delete build/ "
      "and call netdyno again")
    set(${why} "${how}" PARENT_SCOPE)
    message(STATUS "${said}")
  endif()
endfunction()

# The crates that are compiled: cargo holds their files to the checksums of the lock file that it wrote as it fetched them.
function(netdyno_check_crates folder triple why)
  get_property(cargo GLOBAL PROPERTY netdyno_cargo)
  execute_process(COMMAND ${cargo} tree --offline --locked --prefix none --edges normal,build --target ${triple}
    --manifest-path ${folder}/Cargo.toml OUTPUT_VARIABLE tree RESULT_VARIABLE failed ERROR_VARIABLE said
    WORKING_DIRECTORY /)
  if(failed)
    set(${why} "cargo does not list the crates of ${folder}: ${said}" PARENT_SCOPE)
    return()
  endif()
  if(NOT tree)
    return()
  endif()
  file(READ ${folder}/Cargo.lock lock)
  string(REGEX MATCHALL "[^\n ]+ v[^\n ]+( \\(\\*\\))?(\n|$)" crates "${tree}") # a folder's has its path behind it
  foreach(crate IN LISTS crates)
    string(REGEX MATCH "^([^ ]+) v([^ \n]+)" crate "${crate}")
    set(name ${CMAKE_MATCH_1})
    set(version ${CMAKE_MATCH_2})
    string(FIND "${lock}" "name = \"${name}\"\nversion = \"${version}\"\nsource" at)
    string(SUBSTRING "${lock}" ${at} -1 entry)
    string(REGEX MATCH "checksum = \"([0-9a-f]+)\"" digest "${entry}")
    netdyno_check_digest(${name}-${version}.crate ${CMAKE_MATCH_1} wrong)
    if(wrong)
      set(${why} "${wrong}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(netdyno_add_cargo target folder program why)
  netdyno_find_rust(triple missing)
  if(NOT missing)
    netdyno_fetch_crates(${folder} ${triple} missing)
  endif()
  if(NOT missing)
    netdyno_check_crates(${folder} ${triple} missing)
  endif()
  if(missing)
    set(${why} "${missing}" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(name ${folder} NAME)
  set(shared ${CMAKE_SOURCE_DIR}/servers/_shared/*)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.rs ${folder}/Cargo.toml ${shared}/*.rs ${shared}/Cargo.toml)
  list(FILTER sources EXCLUDE REGEX "\\.test\\.rs$")
  # Which crates there are was settled when they were fetched, and is again where a Cargo.toml says something else.
  file(GLOB crates ${folder}/Cargo.toml ${shared}/Cargo.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${crates})
  set(cargo_dir ${CMAKE_BINARY_DIR}/cargo)
  get_property(cargo GLOBAL PROPERTY netdyno_cargo)
  add_custom_command(OUTPUT ${program}
    COMMAND ${cargo} build --release --quiet --locked --offline --jobs 2 --manifest-path ${folder}/Cargo.toml
      --target-dir ${cargo_dir}
    COMMAND ${CMAKE_COMMAND} -E copy ${cargo_dir}/release/${name} ${program}
    COMMAND ${CMAKE_COMMAND} -E touch ${program} # cargo leaves it as it is where the sources say the same as before
    DEPENDS ${sources} ${NETDYNO_CARGO}
    WORKING_DIRECTORY /
    JOB_POOL netdyno_cargo
    COMMENT "Building Rust program ${name}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${program})
endfunction()
