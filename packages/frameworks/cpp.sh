#!/bin/sh
# Builds the main.cpp of a folder with the code of a .proto and what pkg-config knows: cpp.sh FOLDER PLACE PROTO MODULE...
# Nothing is done where it is built already.
set -eu
folder=$1 place=$2 proto=$1/$3
shift 3
want=$(cat "$folder/main.cpp" "$proto" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place"
mkdir -p "$place"
protoc "-I$(dirname "$proto")" "--cpp_out=$place" "--grpc_out=$place" \
    "--plugin=protoc-gen-grpc=$(command -v grpc_cpp_plugin)" "$(basename "$proto")"
# shellcheck disable=SC2046  # a flag is a word
g++ -std=c++20 -O2 -pthread "-I$place" -o "$place/server" "$folder/main.cpp" "$place"/*.cc $(pkg-config --cflags --libs "$@")
printf '%s\n' "$want" >"$place/complete"
