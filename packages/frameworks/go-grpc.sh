#!/bin/sh
# Builds the Go program of a folder with the modules of its go.sum, and the code of a .proto by their own tools: go-grpc.sh
# FOLDER PLACE PROTO, the package of PROTO being the folder of its generated code. Nothing is done where it is built
# already. The last line of a failure is the reason that the user sees.
set -eu
folder=$1 place=$2 proto=$3
want=$(cat "$folder"/*.go "$folder/go.mod" "$folder/go.sum" "$folder/$proto" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place"
mkdir -p "$place/source"
cp "$folder"/*.go "$folder/go.mod" "$folder/go.sum" "$folder/$proto" "$place/source"
cd "$place/source"
export GOTOOLCHAIN=local GOFLAGS="-mod=readonly -trimpath -buildvcs=false" GOBIN="$place/tools" CGO_ENABLED=0
go install tool || { echo "the modules of $folder/go.sum cannot be had: let Go 1.24 or newer reach its proxy once" >&2; exit 1; }
name=$(basename "$proto")
module=$(sed -n 's/^module //p' go.mod)
package=$(sed -n 's/^package .*\.\(.*\);/\1/p' "$name")
PATH="$place/tools:$PATH" protoc --go_out=. --go-grpc_out=. "--go_opt=module=$module,M$name=$module/$package" \
    "--go-grpc_opt=module=$module,M$name=$module/$package" "$name"
go build -o "$place/server" .
printf '%s\n' "$want" >"$place/complete"
