#!/bin/sh
# A gate as a step of a CI server: action.yml runs it, and so does GitLab (docs/gate.md).
#
#   BEFORE, AFTER       two commands that start the servers, or
#   BASE, SERVER        a commit, and the command that starts the server of {tree}; BUILD is the command that builds it
#   SERVER_PATH, BUDGET what is requested (/), and how long the gate may take (10m)
#   OBJECTIVE, RATE     an objective such as p99<20ms, which the new server has to meet at this rate, or at some rate
#   OPTIONS             further options of gate, one a line, such as --margin=p99=40
#   NETDYNO             the netdyno to call (default: that of this clone)
#
# It leaves gate.md, gate.xml (JUnit), report.html and logs in the folder netdyno-gate. It fails where the new server is
# worse or does not meet the objective, and where nothing was measured; a gate that is not decided passes, and says so.
# shellcheck disable=SC2317 # `logged` calls them
set -u
netdyno=${NETDYNO:-$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")/netdyno}
folder='netdyno-gate'
path=${SERVER_PATH:-/}
decision='unmeasured' status=2
rm -rf "$folder"
mkdir -p "$folder/results" || exit 2

quote_log() { # log: its end as Markdown
    printf '\n```text\n'
    tail -n 8 "$1"
    printf '```\n'
}

logged() { # log, command: shown while it runs, too; returns its status
    log=$1
    shift
    { "$@" 2>&1; echo $? >"$folder/status"; } | tee "$log"
    return "$(cat "$folder/status")"
}

list_options() { # verb: one a line; a margin is of the gate alone
    printf '%s\n' "${OPTIONS:-}" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//; /^$/d' |
        if [ "$1" = gate ]; then cat; else sed '/^--margin/d'; fi
}

call() { # verb, its options: with those of OPTIONS before them
    list_options "$1" >"$folder/options"
    verb=$1
    shift
    while read -r option; do set -- "$option" "$@"; done <"$folder/options"
    "$netdyno" "$verb" "$@"
}

decide() { # the servers, as options of gate
    logged "$folder/gate.log" call gate "$@" --path "$path" --time-budget "${BUDGET:-10m}" \
        --results "$folder/results" --markdown "$folder/gate.md" --junit "$folder/gate.xml"
    case $? in
        0) decision='passes' status=0 ;;
        1) decision='fails' status=1 ;;
        3)
            decision='open' status=0
            echo '::warning title=netdyno::The gate is not decided. A longer budget may decide it.'
            ;;
    esac
    mv "$folder"/results/*/report.html "$folder/report.html" 2>/dev/null
    if [ ! -s "$folder/gate.md" ]; then
        { echo '**The gate has no figures.**' && quote_log "$folder/gate.log"; } >"$folder/gate.md"
    fi
}

search_capacity() { # the new server; its answer is in capacity.json
    if [ -n "${BUILD:-}" ]; then sh -c "$BUILD" || return 2; fi
    call capacity --server "$1" --path "$path" --objective "$OBJECTIVE" ${RATE:+--start "$RATE" --most "$RATE"} \
        --results "$folder/results" --json --foreign-load count >"$folder/capacity.json"
}

judge_objective() { # the new server: fails where it was measured and does not meet the objective
    if ! logged "$folder/capacity.log" search_capacity "$1"; then
        decision='unmeasured' status=2
    else
        case "$(sed -n 's/.*"ending": "\([a-z_]*\)".*/\1/p' "$folder/capacity.json")${RATE:+ at a rate}" in
            none* | 'capacity at a rate') decision='fails' status=1 ;;
            'generator at a rate') decision='unmeasured' status=2 ;;
        esac
    fi
    quote_log "$folder/capacity.log" >>"$folder/gate.md"
}

name_file() { # output, file: where it was made
    if [ -s "$folder/$2" ]; then echo "$1=$folder/$2"; else echo "$1="; fi
}

new=${AFTER:-}
if [ -n "${RATE:-}" ] && [ -z "${OBJECTIVE:-}" ]; then
    echo 'netdyno: a rate is that of an objective: give both' | tee "$folder/gate.md" >&2
elif [ -n "${BEFORE:-}" ] && [ -n "$new" ]; then
    decide --before "$BEFORE" --after "$new"
elif [ -n "${BASE:-}" ] && [ -n "${SERVER:-}" ]; then
    new=$(printf '%s' "$SERVER" | sed 's|{tree}|.|g')
    decide --base "$BASE" --repository . --server "$SERVER" ${BUILD:+--build "$BUILD"}
else
    echo 'netdyno: give before and after, or base and server' | tee "$folder/gate.md" >&2
fi
if [ $status = 0 ] && [ -n "${OBJECTIVE:-}" ]; then judge_objective "$new"; fi
rm -rf "$folder/results" "$folder/status" "$folder/options"

if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$folder/gate.md" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    {
        echo "decision=$decision"
        name_file report report.html
        name_file summary gate.md
        name_file junit gate.xml
    } >>"$GITHUB_OUTPUT"
fi
exit $status
