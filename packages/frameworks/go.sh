#!/bin/sh
# Builds the program of a folder with the modules of its go.sum, whose digests Go checks: go.sh FOLDER PLACE.
# Nothing is done where it is built already. The last line of a failure is the reason that the user sees.
set -eu
folder=$1 place=$2
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off
want=$(cat "$folder"/*.go "$folder/go.mod" "$folder/go.sum" "$folder"/../_shared/go/*.go "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place"
mkdir -p "$place"
cd "$folder"
go mod download || { echo "the modules of $folder/go.sum cannot be had: let 'go mod download' reach a proxy once" >&2; exit 1; }
GOPROXY=off go build -p 2 -trimpath -buildvcs=false -o "$place/server" .
printf '%s\n' "$want" >"$place/complete"
