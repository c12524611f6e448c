#!/bin/sh
# cargo-home.sh FOLDER: makes FOLDER a home for cargo in which, of the user's own configuration, stands how crates are
# fetched (source, registries, http, net: Cargo's manual, "Configuration"), and nothing of what changes what is compiled
# (rustflags, profiles, compilers and linkers, patches). Crates are kept with the user's own where that can be written.
set -eu
folder=$1 own=${CARGO_HOME:-${HOME:-$1}/.cargo}
mkdir -p "$folder"
: >"$folder/config.toml.new"
for given in "$own/config.toml" "$own/config"; do # the older name counts where both are there
    [ -f "$given" ] || continue
    awk '
        BEGIN { fetching = "^[ \t]*\\[*[ \t]*\"?(source|registries|registry|http|net)\"?[ \t]*[].]" }
        /^[ \t]*\[\[?[ \t]*["A-Za-z]/ { inside = $0 ~ fetching; table = 1 }
        inside || (!table && $0 ~ fetching) { print }' "$given" >"$folder/config.toml.new"
done
mv "$folder/config.toml.new" "$folder/config.toml"
if [ -f "$own/credentials.toml" ]; then ln -sfn "$own/credentials.toml" "$folder/credentials.toml"; fi
if mkdir -p "$own/registry" 2>/dev/null && [ -w "$own/registry" ] && [ -w "$own" ]; then
    # With cargo's lock, so that two cargos do not unpack the same crate.
    for shared in registry .package-cache; do
        [ -L "$folder/$shared" ] || rm -rf "${folder:?}/$shared"
        ln -sfn "$own/$shared" "$folder/$shared"
    done
elif [ -L "$folder/registry" ]; then
    rm "$folder/registry" "$folder/.package-cache"
fi
