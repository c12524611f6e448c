# Installs what the installed generator says of itself: where shells look for what completes it, and its --help where
# `man` looks. loadgen/CMakeLists.txt sets bin, share, man and version.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(file_of_bash ${share}/bash-completion/completions/netdyno-load)
set(file_of_zsh ${share}/zsh/site-functions/_netdyno-load)
set(file_of_fish ${share}/fish/vendor_completions.d/netdyno-load.fish)
foreach(shell IN ITEMS bash zsh fish)
  execute_process(COMMAND "${prefix}/${bin}/netdyno-load" --completion ${shell}
    OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${prefix}/${file_of_${shell}}" "${script}")
endforeach()
execute_process(COMMAND "${prefix}/${bin}/netdyno-load" --help OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\e" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" text "${text}")
file(WRITE "${prefix}/${man}/man1/netdyno-load.1" ".TH NETDYNO\\-LOAD 1 \"\" \"netdyno ${version}\"
.SH NAME
netdyno\\-load \\- load a server, and measure it
.SH DESCRIPTION
.nf
${text}.fi
")
