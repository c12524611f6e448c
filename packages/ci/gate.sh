#!/bin/sh
# A gate as a step of a CI server: action.yml runs it, and so does GitLab (docs/gate.md).
#
#   BEFORE, AFTER       two commands that start the servers, or
#   BASE, SERVER        a commit, and the command that starts the server of {tree}; BUILD is the command that builds it
#   SERVER_PATH, BUDGET what is requested (/), and how long the gate may take (10m)
#   OBJECTIVE           an objective such as p99<20ms, which the new server has to meet at some rate
#   NETDYNO             the netdyno to call (default: that of this clone)
#
# It leaves gate.md, gate.xml (JUnit), report.html and logs in the folder netdyno-gate. It fails where the new server is
# worse or does not meet the objective, and where nothing was measured; a gate that is not decided passes, and says so.
set -u
netdyno=${NETDYNO:-$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")/netdyno}
folder='netdyno-gate'
path=${SERVER_PATH:-/}
rm -rf "$folder"
mkdir -p "$folder/results" || exit 2

quote_log() { # log: its end as Markdown
    printf '\n```text\n'
    tail -n 8 "$1"
    printf '```\n'
}

decide() { # the servers, as options of gate
    "$netdyno" gate "$@" --path "$path" --time-budget "${BUDGET:-10m}" --results "$folder/results" \
        --markdown "$folder/gate.md" --junit "$folder/gate.xml" >"$folder/gate.log" 2>&1
    status=$?
    cat "$folder/gate.log"
    mv "$folder"/results/*/report.html "$folder/report.html" 2>/dev/null
    case $status in
        0) decision='passes' ;;
        1) decision='fails' ;;
        3)
            decision='open' status=0
            echo '::warning title=netdyno::The gate is not decided. A longer budget may decide it.'
            ;;
        *) decision='unmeasured' status=2 ;;
    esac
    if [ ! -s "$folder/gate.md" ]; then
        { echo '**Nothing was measured.**' && quote_log "$folder/gate.log"; } >"$folder/gate.md"
    fi
}

meets_objective() { # the new server
    if [ -n "${BUILD:-}" ]; then sh -c "$BUILD" || return 1; fi
    "$netdyno" capacity --server "$1" --path "$path" --objective "$OBJECTIVE" --results "$folder/results" --json \
        --foreign-load count \
        >"$folder/capacity.json" && ! grep -q '"ending": "none"' "$folder/capacity.json"
}

new=${AFTER:-}
if [ -n "${BEFORE:-}" ] && [ -n "$new" ]; then
    decide --before "$BEFORE" --after "$new"
elif [ -n "${BASE:-}" ] && [ -n "${SERVER:-}" ]; then
    new=$(printf '%s' "$SERVER" | sed 's|{tree}|.|g')
    decide --base "$BASE" --repository . --server "$SERVER" ${BUILD:+--build "$BUILD"}
else
    echo 'netdyno: give before and after, or base and server' >&2
    exit 2
fi
if [ -n "${OBJECTIVE:-}" ]; then
    if ! meets_objective "$new" >"$folder/capacity.log" 2>&1 && [ $status = 0 ]; then status=1 decision='fails'; fi
    cat "$folder/capacity.log"
    quote_log "$folder/capacity.log" >>"$folder/gate.md"
fi
rm -r "$folder/results"

if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$folder/gate.md" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf '%s\n' "decision=$decision" "report=$folder/report.html" "summary=$folder/gate.md" \
        "junit=$folder/gate.xml" >>"$GITHUB_OUTPUT"
fi
exit $status
