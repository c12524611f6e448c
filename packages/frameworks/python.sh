#!/bin/sh
# Lays out the packages of a lock in an environment of their own: python.sh PYTHON LOCK PLACE.
# Nothing is done where they are there already. The last line of a failure is the reason that the user sees.
set -eu
python=$1 lock=$2 place=$3
root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
uv=$(dirname "$python")/uv
want=$(cat "$lock" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
rm -rf "$place"
"$uv" venv --quiet --python "$(readlink -f "$python")" "$place"
PYTHONPATH=$root/packages "$python" -m pip_settings "$uv" pip sync --quiet --python "$place/bin/python" \
    --require-hashes "$lock" || { echo "the packages of $lock cannot be had: let pip reach its index once" >&2; exit 1; }
printf '%s\n' "$want" >"$place/complete"
