# Java, by javac: a folder's *.java, with Main in it, and what servers in Java share become one jar, and the program is a
# script that starts it. The newest JDK of the machine builds and runs all of them, so that two servers in Java differ in
# no JVM.

set(netdyno_java_least 17)
set(netdyno_netty 4.2.10.Final)
# A heap that begins small, so that it grows by what lives in it and not by garbage, with a young generation that is soon
# filled once; and the collector that has no thread of its own: it stops all others, on one thread, and gives back what
# it finds free.
set(netdyno_java_options -Xms32m -Xmx1g -Xmn8m -XX:+UseSerialGC -XX:+AlwaysPreTouch -XX:-UseDynamicNumberOfCompilerThreads
  -XX:-UsePerfData -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 -XX:-ShrinkHeapInSteps)

# Looks once for the JDKs of this machine: the home and the version of the newest; 0 where there is none.
function(netdyno_find_jdk home version)
  get_property(sought GLOBAL PROPERTY netdyno_java_version SET)
  if(NOT sought)
    find_program(NETDYNO_JAVAC javac HINTS $ENV{JAVA_HOME}/bin)
    file(GLOB compilers /usr/lib/jvm/*/bin/javac)
    set(newest 0)
    foreach(compiler IN LISTS NETDYNO_JAVAC compilers)
      if(NOT EXISTS ${compiler})
        continue()
      endif()
      file(REAL_PATH ${compiler} compiler)
      get_filename_component(folder ${compiler} DIRECTORY)
      get_filename_component(folder ${folder} DIRECTORY)
      set(said "")
      if(EXISTS ${folder}/release)
        file(STRINGS ${folder}/release said REGEX "^JAVA_VERSION=")
      endif()
      if(said MATCHES "\"([0-9]+)[0-9._]*\"" AND CMAKE_MATCH_1 GREATER newest)
        set(newest ${CMAKE_MATCH_1})
        set_property(GLOBAL PROPERTY netdyno_java_home ${folder})
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY netdyno_java_version ${newest})
    get_property(found GLOBAL PROPERTY netdyno_java_home)
    set(NETDYNO_JAVA "${found}/bin/java" CACHE INTERNAL "what runs contestants in Java")
  endif()
  get_property(found GLOBAL PROPERTY netdyno_java_home)
  set(${home} "${found}" PARENT_SCOPE)
  get_property(found GLOBAL PROPERTY netdyno_java_version)
  set(${version} ${found} PARENT_SCOPE)
endfunction()

function(netdyno_need_jdk22 result why)
  netdyno_find_jdk(home version)
  if(version LESS 22)
    string(CONCAT how "a JDK of version 22 or newer not found: install openjdk-25-jdk-headless, or "
      "(Debian 12 has 17) unpack one, such as Temurin 25, under /usr/lib/jvm, or name it in JAVA_HOME; then delete "
      "build/ and call netdyno again")
    set(${why} "${how}" PARENT_SCOPE)
  endif()
  set(${result} "" PARENT_SCOPE)
endfunction()

# Sets `why` where a jar of a folder is not the one that was tried.
function(netdyno_check_jars folder why)
  file(GLOB jars ${folder}/*.jar)
  foreach(jar IN LISTS jars)
    get_filename_component(name ${jar} NAME)
    file(SHA256 ${jar} digest)
    netdyno_check_digest(${name} ${digest} wrong)
    if(wrong)
      set(${why} "${wrong}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Netty's jars, and out of one of them the native transport, which Netty would else unpack to /tmp at each start. The
# network is asked only for what is not in the build directory yet, and never while something is built.
function(netdyno_need_netty result why)
  set(${result} "" PARENT_SCOPE)
  netdyno_find_jdk(home version)
  if(version LESS netdyno_java_least) # said once, by the kind
    return()
  endif()
  set(netty ${CMAKE_BINARY_DIR}/java/netty-${netdyno_netty})
  if(NOT EXISTS ${netty}/complete OR NOT EXISTS ${netty}/netty-handler-${netdyno_netty}.jar) # that of TLS came later
    find_program(NETDYNO_MVN mvn)
    if(NOT NETDYNO_MVN)
      set(${why} "Maven, which fetches Netty, not found: install maven, then delete build/ and call netdyno again"
        PARENT_SCOPE)
      return()
    endif()
    message(STATUS "fetching Netty ${netdyno_netty} by Maven")
    set(netdyno_netty_processor ${CMAKE_SYSTEM_PROCESSOR})
    if(netdyno_netty_processor STREQUAL "aarch64")
      set(netdyno_netty_processor aarch_64)
    endif()
    configure_file(${CMAKE_SOURCE_DIR}/servers/netty/pom.xml ${netty}/pom.xml @ONLY)
    set(repository "") # the user's own, where it can be written
    execute_process(COMMAND sh -c "mkdir -p \"$HOME/.m2/repository\" && [ -w \"$HOME/.m2/repository\" ]"
      RESULT_VARIABLE read_only ERROR_QUIET)
    if(read_only)
      set(repository -Dmaven.repo.local=${CMAKE_BINARY_DIR}/java/repository)
    endif()
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env JAVA_HOME=${home} ${NETDYNO_MVN} -q -B
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=${netty}
        ${repository}
      WORKING_DIRECTORY ${netty} TIMEOUT 240 RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    file(GLOB natives ${netty}/netty-transport-native-epoll-*-linux-*.jar)
    if(failed OR NOT natives)
      message(STATUS "${said}")
      string(CONCAT how "Netty ${netdyno_netty} cannot be had: let Maven reach a repository once, then delete build/ and "
        "call netdyno again")
      set(${why} "${how}" PARENT_SCOPE)
      return()
    endif()
    netdyno_check_jars(${netty} wrong)
    if(wrong)
      set(${why} "${wrong}" PARENT_SCOPE)
      return()
    endif()
    execute_process(COMMAND ${CMAKE_COMMAND} -E tar xf ${natives} WORKING_DIRECTORY ${netty})
    file(TOUCH ${netty}/complete)
  endif()
endfunction()

function(netdyno_add_java target folder program why)
  netdyno_find_jdk(home version)
  if(version LESS netdyno_java_least)
    string(CONCAT how "a JDK of version ${netdyno_java_least} or newer not found: install default-jdk-headless, then "
      "delete build/ and call netdyno again")
    set(${why} "${how}" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(name ${folder} NAME)
  file(READ ${folder}/server.json manifest)
  set(release ${netdyno_java_least})
  if(manifest MATCHES "\"jdk22\"")
    set(release 22)
  endif()
  set(java_dir ${CMAKE_BINARY_DIR}/java/${name})
  set(options ${netdyno_java_options})
  set(jars "")
  if(manifest MATCHES "\"netty\"")
    set(netty ${CMAKE_BINARY_DIR}/java/netty-${netdyno_netty})
    file(GLOB jars RELATIVE ${java_dir} ${netty}/*.jar)
    list(APPEND options "-Djava.library.path=\"${netty}/META-INF/native\"")
  endif()
  string(REPLACE ";" " \n " class_path "${jars}") # each on a line of its own: one has at most 72 bytes
  file(WRITE ${java_dir}/manifest.txt.new
    "Main-Class: Main\nEnable-Native-Access: ALL-UNNAMED\nClass-Path: \n ${class_path}\n")
  string(REPLACE ";" " " options "${options}")
  set(archive ${java_dir}/classes.jsa)
  file(WRITE ${program}.in
    "#!/bin/sh\nexec env -u PWD \"${home}/bin/java\" ${options} -Xlog:disable -XX:SharedArchiveFile=\"${archive}\" -jar \"${java_dir}/program.jar\" \"$@\"\n")
  foreach(made ${java_dir}/manifest.txt)
    execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${made}.new ${made})
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.java ${CMAKE_SOURCE_DIR}/servers/_shared/java/*.java)
  list(JOIN jars ":" jar_path)
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E rm -rf classes
    # Strings are joined in place: by default, the first time costs a start a tenth of a second. A compiler that runs for
    # a second is itself not worth C2 (-J, of javac's own JVM): so it takes half the CPU.
    COMMAND ${home}/bin/javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -nowarn -XDstringConcat=inline --release ${release} -d classes
      -cp "${jar_path}" ${sources}
    COMMAND ${home}/bin/jar --create --file program.jar --manifest manifest.txt -C classes .
    COMMAND bash ${CMAKE_SOURCE_DIR}/cmake/kinds/java-archive.sh ${archive} ${program}.in $<TARGET_FILE:netdyno-launch>
    COMMAND ${CMAKE_COMMAND} -E copy ${program}.in ${program}
    COMMAND chmod +x ${program}
    DEPENDS ${sources} ${java_dir}/manifest.txt ${program}.in ${CMAKE_SOURCE_DIR}/cmake/kinds/java-archive.sh
      netdyno-launch
    WORKING_DIRECTORY ${java_dir}
    COMMENT "Building Java program ${name}"
    VERBATIM)
  add_custom_target(${target} ALL DEPENDS ${program})
endfunction()
