# A small canary that says what netdyno-canary would. FAKE_CANARY makes it misbehave, or names a file with its speeds:
# each call takes the first of them away, and the last stays. A shell, as it is started some thousand times.

round_trips=20000.0
millions=900.0
case "${FAKE_CANARY:-good}" in
  fails)
    echo "netdyno-canary: cannot have real-time priority" >&2
    exit 1
    ;;
  unreadable)
    echo "{"
    exit 0
    ;;
  speeds:*)
    file=${FAKE_CANARY#speeds:}
    read -r first rest <"$file"
    printf '%s' "${rest:-$first}" >"$file"
    round_trips=$(awk "BEGIN { printf \"%.12g\", 20000 * $first }")
    millions=$(awk "BEGIN { printf \"%.12g\", 900 * $first }")
    ;;
esac
echo "{\"round_trips_per_second\": $round_trips, \"server_millions_per_second\": $millions," \
  "\"generator_millions_per_second\": $millions, \"one_core_round_trips_per_second\": 100000, \"seconds\": 0.03}"
