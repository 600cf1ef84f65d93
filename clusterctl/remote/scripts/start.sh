# shellcheck shell=sh
# Start one program of a node, detached, and leave a record of it.
# CLUSTER NODE LOG_BYTES RECORD ENV_COUNT VARIABLE=VALUE... PROGRAM ARGUMENT...
# Prints the state, the process number and, if it has ended, the exit status.
directory=$STATE_HOME/$1/nodes/$2
log_bytes=$3
record=$4
count=$5
shift 5

case $(process_state "$directory") in
running | unsure)
    echo "already running"
    exit 3
    ;;
esac

mkdir -p "$directory" || exit 1
rm -f "$directory/process" "$directory/exit" "$directory/log" "$directory/log.old"
echo 0 >"$directory/log.start"
printf '%s' "$record" >"$directory/record.json" || exit 1

# The program's arguments are what follows the variables.
(
    shift "$count"
    printf '%s\n' "$@"
) >"$directory/argv" || exit 1
fingerprint "$(sed -n 1p "$directory/argv")" >"$directory/fingerprint"

# Keep the log short from beside it: a pipe to a program that does so could block or end the writer. The log is
# open for appending, so it may be emptied under its writer; what is written in that instant is lost.
bound_log() {
    # `$!` is the program's until a nap has begun. One that has only just begun still has our handler, which would
    # swallow a milder signal.
    trap '[ $! = "$pid" ] || kill -KILL $!; exit' TERM
    while process_lives "$pid"; do
        sleep 5 &
        wait $!
        size=$(($(wc -c <"$directory/log")))
        [ "$size" -gt "$log_bytes" ] || continue
        tail -c "$log_bytes" "$directory/log" >"$directory/log.old"
        : >"$directory/log"
        echo $(($(cat "$directory/log.start") + size)) >"$directory/log.start"
    done
}

# The supervisor outlives this script only to keep the log short and to write down how the program ended.
supervise() {
    [ -n "$lead_group" ] || set -m
    (
        while is_assignment "$1"; do
            export "${1?}"
            shift
        done
        # shellcheck disable=SC2086 # a word, or none
        exec $lead_group "$@"
    ) &
    pid=$!
    set +m
    # A program that nobody could end again must not run.
    {
        printf '%s\n%s\n%s\n' "$pid" "$(process_start "$pid")" "$(boot_id)" >"$directory/process.new" &&
            mv "$directory/process.new" "$directory/process"
    } || signal_group KILL "$pid"
    bound_log &
    keeper=$!
    wait "$pid"
    status=$?
    kill "$keeper" 2>/dev/null
    wait "$keeper" 2>/dev/null
    [ ! -d "$directory" ] || echo "$status" >"$directory/exit"
}
trap '' HUP
(
    # Redirected for good: a redirected function call would keep copies that hold the caller's channel open.
    exec </dev/null >>"$directory/log" 2>&1
    supervise "$@"
) &

tries=100
state=starting
while [ "$state" != running ] && [ ! -f "$directory/exit" ] && [ "$tries" -gt 0 ]; do
    sleep 0.05
    state=$(process_state "$directory")
    tries=$((tries - 1))
done
if [ ! -f "$directory/process" ]; then
    echo "its process could not be written down in $directory" >&2
    exit 1
fi
[ ! -f "$directory/exit" ] || state=ended # it may have been asked while it was ending
[ "$state" != unsure ] || signal_group KILL "$(first_line "$directory/process")"
printf '%s\n%s\n%s\n' "$state" "$(sed -n 1p "$directory/process")" "$(cat "$directory/exit" 2>/dev/null)"
