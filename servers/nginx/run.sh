#!/bin/sh
# Starts nginx with the configuration of this folder: run.sh ADDRESS PORT THREADS PREFIX.
set -eu
repeat() { # how often, text
    printf "%${1}s" '' | sed "s/ /$2/g"
}
stamp=28
fillings=
for size in 64 128 256 512 1024 2048 4096 8192 16384 32768 65536; do
    left=$((size - stamp))
    # shellcheck disable=SC2016 # ${kib} is a variable of nginx
    fillings="$fillings $size \"$(repeat $((left / 1024)) '${kib}')$(repeat $((left % 1024)) x)\";"
done
mkdir -p "$4"
# nginx reads it once, through the descriptor: no file is left.
configuration=$(mktemp)
sed -e "s/ADDRESS/$1/; s/PORT/$2/; s/THREADS/$3/; s/KIB/$(repeat 1024 x)/" -e "s/FILLINGS/$fillings/" \
    "$(dirname "$0")/nginx.conf" >"$configuration"
exec 3<"$configuration"
rm "$configuration"
exec nginx -p "$4" -c /proc/self/fd/3
