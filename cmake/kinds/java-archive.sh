#!/bin/bash
# java-archive.sh ARCHIVE PROGRAM LAUNCHER: starts a server once and asks it once, so that the JVM leaves an archive of the
# classes which that takes (application class-data sharing), with which each start is quicker. Without one, the server
# starts all the same.
set -eu
archive=$1 program=$2 launcher=$3
made=$archive.made said=$archive.said
rm -f "$archive" "$made" "$said" # the last: it names the port of an earlier build
sed "s|-XX:SharedArchiveFile=\"[^\"]*\"|-XX:ArchiveClassesAtExit=\"$made\"|" "$program" >"$archive.training"
# It ends with this script, even if that is killed: it holds the lock of the build.
setpriv --pdeathsig KILL "$launcher" training any sh "$archive.training" -- --listen tcp://127.0.0.1:0 >"$said" 2>&1 &
server=$!
trap 'kill -KILL $server 2>/dev/null || true' EXIT # this script may fail before the signal of its death is asked for
patience=300
until port=$(sed -n 's/.*"ready".*"endpoint": *"tcp:[^"]*:\([0-9]*\)".*}$/\1/p' "$said" 2>/dev/null) && [ "$port" ]; do
    if [ $patience = 0 ] || ! kill -0 $server 2>/dev/null; then
        cat "$said" >&2
        exit 1
    fi
    patience=$((patience - 1))
    sleep 0.1
done
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf '\0\0\0\1.' >&3
read -r -t 5 -n 1 -d "" <&3 || true # the first byte of the echoed frame, which is NUL
exec 3>&-
kill -TERM $server
if wait $server && [ -s "$made" ]; then mv "$made" "$archive"; fi
