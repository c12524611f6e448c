#!/bin/sh
# Builds the program of a folder with the crates of its crates.lock: cargo.sh FOLDER PLACE PROGRAM.
# crates.lock is a Cargo.lock that names no registry (docs/adr/digests.md). Nothing is done where it is built already. The
# last line of a failure is the reason that the user sees.
set -eu
folder=$1 place=$2 program=$3
want=$(cat "$folder"/*.rs "$folder/Cargo.toml" "$folder/crates.lock" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place/complete" "$place/source"
mkdir -p "$place/source"
cp "$folder"/*.rs "$folder/Cargo.toml" "$place/source"
cd "$place/source"
fail() { echo "the crates of $folder cannot be had: let 'cargo fetch' reach a registry once" >&2; exit 1; }
cargo generate-lockfile --quiet || fail
registry=$(sed -n 's/^source = "\(.*\)"/\1/p' Cargo.lock | sort -u | head -n 1)
sed "s|REGISTRY|$registry|" "$folder/crates.lock" >Cargo.lock
cargo fetch --quiet --locked || fail
cargo build --release --quiet --locked --offline --jobs 2 --target-dir "$place/target"
cp "$place/target/release/$program" "$place/server"
printf '%s\n' "$want" >"$place/complete"
