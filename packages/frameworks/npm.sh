#!/bin/sh
# Lays out the packages of a folder's package-lock.json: npm.sh FOLDER PLACE.
# Nothing is done where they are there already. The last line of a failure is the reason that the user sees.
set -eu
folder=$1 place=$2
want=$(cat "$folder/package.json" "$folder/package-lock.json" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place"
mkdir -p "$place"
cp "$folder/package.json" "$folder/package-lock.json" "$place"
(cd "$place" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error) ||
    { echo "the packages of $folder/package-lock.json cannot be had: let npm reach its registry once" >&2; exit 1; }
printf '%s\n' "$want" >"$place/complete"
